/** Stands between one handle and its server, whatever they speak, to lose replies to what was asked. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

/** Long enough for the server to do what it was asked. */
const LOSING_MS = 30;

export class LosingWay {
  readonly host: string;
  readonly #server: Server;
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  readonly #clients = new Set<Socket>();
  #isLosing = false;

  static async to(port: number): Promise<LosingWay> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    server.unref();
    return new LosingWay(server, port);
  }

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.#port = port;
    const address = server.address();
    this.host = `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
    server.on("connection", (client: Socket) => this.#forward(client));
  }

  /** What the server says from now on is not heard; a moment later the connections end. */
  lose(): void {
    if (this.#isLosing) return;
    this.#isLosing = true;
    setTimeout(() => {
      this.#isLosing = false;
      for (const client of this.#clients) client.destroy();
    }, LOSING_MS).unref();
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }

  #forward(client: Socket): void {
    const server = connect(this.#port, "127.0.0.1");
    this.#clients.add(client);
    for (const socket of [client, server]) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => this.#sockets.delete(socket));
    }
    client.on("close", () => {
      this.#clients.delete(client);
      server.destroy();
    });
    server.on("close", () => client.destroy());
    client.on("data", (bytes) => server.write(bytes));
    server.on("data", (bytes) => {
      if (!this.#isLosing) client.write(bytes);
    });
  }
}
