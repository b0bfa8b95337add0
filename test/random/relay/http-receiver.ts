/** Real HTTP receivers on loopback that come and go, and a clock that makes hours of them bearable. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { ManualClock } from "../../manual-clock.ts";

/** So long is one step of the fast clock for the machine. */
const TICK_MS = 2;

/**
 * Runs so much faster than the machine's, in small steps, each of which leaves receivers and senders a turn. On a machine
 * that is busy with other things it is slower, as they are: a time limit runs out where there is no answer, and not where
 * there was no turn to read it.
 */
export class FastClock extends ManualClock implements Disposable {
  readonly #rate: number;
  #isOver = false;

  constructor(rate: number) {
    super();
    this.#rate = rate;
    void this.#run();
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      await wait(TICK_MS);
      await this.pass(TICK_MS * this.#rate);
    }
  }
}

export type Answer =
  | "ok"
  | "fatal"
  | "fails"
  | "unserved"
  | "later"
  | "resets"
  | "hangs"
  | "retry-body"
  | "drop-body"
  | "half-body";

export interface Request {
  readonly id: string;
  readonly attempt: number;
  readonly answer: Answer;
}

export class ComingAndGoing {
  readonly requests: Request[] = [];
  inFlight = 0;
  mostInFlight = 0;
  isUp = false;
  port = 0;
  /** What it says to everybody, instead of what each message deserves. */
  mood: Answer | undefined;
  readonly #answerOf: (id: string, attempt: number) => Answer;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(answerOf: (id: string, attempt: number) => Answer) {
    this.#answerOf = answerOf;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async come(): Promise<void> {
    if (this.isUp) return;
    this.isUp = true;
    const server = createServer((request, response) => this.#hear(request, response));
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => undefined);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.port, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (isAddress(address)) this.port = address.port;
    this.#server = server;
  }

  async go(): Promise<void> {
    if (!this.isUp) return;
    this.isUp = false;
    const server = this.#server;
    await new Promise<void>((resolve) => {
      server?.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  #hear(request: IncomingMessage, response: ServerResponse): void {
    request.resume();
    request.on("error", () => undefined);
    const id = String(request.headers["baton-id"]);
    const attempt = Number(request.headers["baton-attempt"]);
    const answer = this.mood ?? this.#answerOf(id, attempt);
    this.requests.push({ id, attempt, answer });
    this.inFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.inFlight);
    response.once("close", () => (this.inFlight -= 1));
    request.once("end", () => this.#answer(answer, response, request.socket));
  }

  #answer(answer: Answer, response: ServerResponse, socket: Socket): void {
    switch (answer) {
      case "ok":
        return void response.writeHead(204).end();
      case "fatal":
        return void response.writeHead(422).end("never");
      case "fails":
        return void response.writeHead(500).end("no");
      case "unserved":
        return void response.writeHead(503).end();
      case "later":
        return void response.writeHead(429, { "retry-after": "1" }).end();
      case "resets":
        return void socket.resetAndDestroy();
      case "hangs":
        return;
      case "retry-body":
        return void response.writeHead(200, { "content-type": "application/json" }).end('{"status":"RETRY"}');
      case "drop-body":
        return void response.writeHead(200, { "content-type": "application/json" }).end('{"status":"DROP"}');
      case "half-body":
        response.writeHead(200, { "content-length": "100" }).write('{"status":');
        return void setImmediate(() => socket.destroy());
    }
  }
}

function isAddress(address: AddressInfo | string | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
