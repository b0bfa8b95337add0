/** A real HTTP server that behaves, or misbehaves, as a test says. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { TestContext } from "node:test";

export interface Received {
  readonly url: string | undefined;
  readonly method: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

export type Answer = (received: Received, response: ServerResponse, socket: Socket) => unknown;

export class Receiver {
  readonly received: Received[] = [];
  readonly connections: Set<Socket> = new Set();
  /** How it answers from now on. */
  answer: Answer = (_received, response) => response.writeHead(204).end();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("error", () => undefined);
      request.on("end", () => {
        const { url, method, headers, socket } = request;
        const received = { url, method, headers, body: Buffer.concat(chunks) };
        this.received.push(received);
        this.answer(received, response, socket);
      });
    });
    this.#server.on("connection", (socket) => this.connections.add(socket));
  }

  static async start(test: TestContext): Promise<Receiver> {
    const receiver = new Receiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    test.after(() => receiver.stop());
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.connections) socket.destroy();
    });
  }
}
