/** Carriers of wakes that are not to be had, each in its own way. */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { freePort } from "../../servers/free-port.ts";

/** The kinds of carrier that have a server. */
export const CARRIERS = ["nats", "redis", "postgres"] as const;

/** A name that no resolver may know (RFC 2606). */
const UNKNOWN_HOST = "carrier.invalid";

/** Takes connections and never says a word, as a server that stands still does. */
export class SilentServer implements AsyncDisposable {
  readonly #server: Server = createServer((socket) => {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
  });
  readonly #sockets = new Set<Socket>();
  /** Host and port. */
  address = "";

  static async start(): Promise<SilentServer> {
    const silent = new SilentServer();
    silent.#server.listen(0, "127.0.0.1");
    await once(silent.#server, "listening");
    const address = silent.#server.address();
    if (address === null || typeof address === "string") throw new Error("It listens on no port.");
    silent.address = `127.0.0.1:${address.port}`;
    return silent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** Ways to be away, and an address that is away in this way. */
export function waysToBeAway(silent: SilentServer): Readonly<Record<string, () => Promise<string>>> {
  return {
    "refuses connections": async () => `127.0.0.1:${await freePort()}`,
    "has an unknown name": async () => UNKNOWN_HOST,
    "says nothing": async () => silent.address,
  };
}

export function urlOf(carrier: string, address: string): string {
  return carrier === "postgres" ? `postgres://${address}/app` : `${carrier}://${address}`;
}
