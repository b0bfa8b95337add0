/**
 * The way of one process to its servers: a port of its own for each of them. Processes know no other, so whatever a network
 * may do to one of them can be done here.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { Channel, type Conduct } from "./channel.ts";

export interface Weather {
  readonly requests: Conduct;
  readonly replies: Conduct;
}

export const FAIR: Weather = { requests: "pass", replies: "pass" };

interface Connection {
  readonly requests: Channel;
  readonly replies: Channel;
  readonly sockets: readonly Socket[];
}

export class Proxy {
  readonly #servers: Server[] = [];
  readonly #connections = new Set<Connection>();
  #weather: Weather = FAIR;
  #isCut = false;

  /** The ports in front of those given, in the same order. */
  async open(ports: readonly number[]): Promise<readonly number[]> {
    const opened: number[] = [];
    for (const port of ports) {
      const server = createServer((client) => this.#accept(client, port));
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      this.#servers.push(server);
      const address = server.address();
      if (typeof address !== "object" || address === null) throw new Error("The proxy has no port.");
      opened.push(address.port);
    }
    return opened;
  }

  /** Every connection breaks, and none can be made. */
  cut(): void {
    this.#isCut = true;
    this.#breakAll();
  }

  turn(weather: Weather): void {
    this.#weather = weather;
    for (const { requests, replies } of this.#connections) {
      requests.become(weather.requests);
      replies.become(weather.replies);
    }
  }

  /** All is well again. A stream out of which something was lost cannot go on; whoever uses it has to connect anew. */
  clear(): void {
    const { requests, replies } = this.#weather;
    if (requests === "drop" || replies === "drop") this.#breakAll();
    this.#isCut = false;
    this.turn(FAIR);
  }

  close(): void {
    this.#breakAll();
    for (const server of this.#servers) server.close();
  }

  #accept(client: Socket, port: number): void {
    if (this.#isCut) {
      client.destroy();
      return;
    }
    const server = connect(port, "127.0.0.1");
    const requests = new Channel(server, this.#weather.requests);
    const replies = new Channel(client, this.#weather.replies);
    const connection = { requests, replies, sockets: [client, server] };
    this.#connections.add(connection);
    for (const [from, channel] of [
      [client, requests],
      [server, replies],
    ] as const) {
      from.setNoDelay(true);
      from.on("error", () => undefined);
      from.on("data", (bytes: Buffer) => channel.send(bytes));
      from.on("close", () => {
        channel.send(undefined);
        if (client.destroyed && server.destroyed) this.#connections.delete(connection);
      });
    }
  }

  #breakAll(): void {
    for (const { requests, replies, sockets } of this.#connections) {
      requests.close();
      replies.close();
      for (const socket of sockets) socket.destroy();
    }
    this.#connections.clear();
  }
}
