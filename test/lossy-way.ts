/** Stands between one engine and its server, to lose what a network may lose. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export interface Loss {
  /** What is asked for when it is lost: a prepared statement, a command. */
  readonly word: string;
  /** Which of the engine's connections, in the order in which they were made; any, if it is not said. */
  readonly connection?: number;
  /** Shorter replies pass. */
  readonly leastBytes?: number;
  /** The connection ends as soon as the statement was sent; otherwise when the server has done what it was asked to. */
  readonly atOnce?: boolean;
}

/** Of PostgreSQL: "ready for the next query; no transaction is open": the last thing of a reply, and what it was about is committed. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

export class LossyWay {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #port: number;
  #connections = 0;
  #loss: Loss | undefined;
  #lost: () => void = () => undefined;

  /** To the server of this URL. */
  static async to(url: string): Promise<LossyWay> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    server.unref();
    return new LossyWay(server, new URL(url));
  }

  private constructor(server: Server, url: URL) {
    this.#server = server;
    this.#port = Number(url.port);
    const address = server.address();
    url.port = typeof address === "object" && address !== null ? String(address.port) : "";
    this.url = url.href;
    server.on("connection", (client: Socket) => this.#forward(client));
  }

  get connections(): number {
    return this.#connections;
  }

  /** Resolves when it has lost it. */
  lose(loss: Loss): Promise<void> {
    this.#loss = loss;
    return new Promise((resolve) => (this.#lost = resolve));
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #forward(client: Socket): void {
    const number = (this.#connections += 1);
    const server = connect(this.#port, "127.0.0.1");
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => this.#sockets.delete(socket));
    }
    let loss: Loss | undefined;
    let reply: Buffer[] = [];
    const lose = (): void => {
      this.#loss = undefined;
      client.destroy();
      this.#lost();
    };
    server.on("close", () => client.destroy());
    // The server is not told of a client that was lost: it finds out when it answers.
    client.on("close", () => loss ?? server.destroy());
    client.on("data", (bytes) => {
      const { word, connection = number, atOnce = false } = this.#loss ?? {};
      if (word !== undefined && connection === number && bytes.includes(word)) loss = this.#loss;
      server.write(bytes);
      if (loss !== undefined && atOnce) lose();
    });
    server.on("data", (bytes) => {
      if (loss === undefined) return client.write(bytes);
      reply.push(bytes);
      const whole = Buffer.concat(reply);
      if (!whole.subarray(-READY.length).equals(READY)) return undefined;
      reply = [];
      if (whole.length >= (loss.leastBytes ?? 0)) return lose();
      loss = undefined;
      return client.write(whole);
    });
  }
}
