/** The original's configuration files, run as they are, but for ports and times. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { createRelay, readConfig, type Relay } from "../../../src/relay/index.ts";
import { Desk, type Started } from "../../cli/baton-command.ts";

export interface Request {
  readonly body: string;
  readonly method: string;
  readonly contentType: string | undefined;
  /** Which delivery of this body it is. */
  readonly delivery: number;
  readonly answer: (status: number, body?: string) => void;
}

/** An application: tells of every request, and answers when it is told to. */
export class Receiver {
  readonly requests: Request[] = [];
  readonly url: string;
  /** What is done with each request; none: it waits. */
  handle: ((request: Request) => void) | undefined;

  private constructor(url: string) {
    this.url = url;
  }

  static async open(test: TestContext): Promise<Receiver> {
    const server = createServer((incoming, response) => {
      void readBody(incoming).then((body) => {
        const request: Request = {
          body,
          method: incoming.method ?? "",
          contentType: incoming.headers["content-type"],
          delivery: receiver.requests.filter((other) => other.body === body).length + 1,
          answer: (status, said = "") => response.writeHead(status).end(said),
        };
        receiver.requests.push(request);
        receiver.handle?.(request);
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    test.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const receiver = new Receiver(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return receiver;
  }

  bodies(): readonly string[] {
    return this.requests.map(({ body }) => body);
  }
}

async function readBody(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
  } catch {
    // The relay was killed while it sent.
  }
  return Buffer.concat(chunks).toString("utf8");
}

export interface Places {
  readonly receiver: Receiver;
  /** Of the SQS emulator. */
  readonly sqs?: string;
  /** Of the Pub/Sub emulator. */
  readonly pubsub?: string;
  /** Of the times in the file, in seconds: tests do not wait for ten minutes. */
  readonly visibilitySeconds?: number;
}

/** One of the original's files, in a folder of its own. */
export class OriginalRelay {
  readonly #desk: Desk;
  readonly #file: string;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(test: TestContext, file: string, { receiver, sqs, pubsub, visibilitySeconds }: Places) {
    this.#desk = new Desk(test);
    const text = readFileSync(join(import.meta.dirname, "original", file), "utf8")
      .replaceAll("http://localhost:4566", sqs ?? "http://localhost:4566")
      .replaceAll("http://localhost:5000/", receiver.url)
      .replaceAll('"visibility_timeout": 600', `"visibility_timeout": ${visibilitySeconds ?? 600}`);
    this.#file = this.#desk.write(file, text);
    this.#environment = {
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      ...(pubsub === undefined ? {} : { PUBSUB_EMULATOR_HOST: pubsub }),
    };
  }

  /** `baton relay --config FILE` */
  start(): Started {
    return this.#desk.start(["relay", "--config", this.#file], { env: this.#environment });
  }

  /** The same through the library: costs no process. */
  async open(): Promise<Relay> {
    return await createRelay(await readConfig(this.#file));
  }
}
