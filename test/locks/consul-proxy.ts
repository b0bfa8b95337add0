/** Stands between one connection and Consul, to lose what a network may lose. */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

interface Plan {
  losesReply: boolean;
  hasLeader: boolean;
  isCut: boolean;
  requests: number;
  readonly watchers: Set<(request: string) => void>;
}

export class ConsulProxy {
  readonly address: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;
  readonly #plan: Plan;

  /** Forwards to the port on this machine. */
  static async before(port: number): Promise<ConsulProxy> {
    const sockets = new Set<Socket>();
    const plan: Plan = { losesReply: false, hasLeader: true, isCut: false, requests: 0, watchers: new Set() };
    const server = createServer((client) => {
      const consul = connect(port, "127.0.0.1");
      let isSilent = false;
      for (const socket of [client, consul]) {
        sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          sockets.delete(socket);
          client.destroy();
          consul.destroy();
        });
      }
      client.on("data", (bytes) => {
        if (plan.isCut) return;
        plan.requests += 1;
        for (const watcher of plan.watchers) watcher(bytes.toString("latin1"));
        // The client sends one request at a time over a connection, so each begins with its method.
        if (bytes.subarray(0, 4).toString("latin1") === "PUT ") {
          if (!plan.hasLeader) {
            plan.hasLeader = true;
            client.write("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 17\r\n\r\nNo cluster leader");
            return;
          }
          if (plan.losesReply) {
            plan.losesReply = false;
            isSilent = true;
          }
        }
        consul.write(bytes);
      });
      consul.on("data", (bytes) => {
        if (plan.isCut) return;
        if (isSilent) client.destroy();
        else client.write(bytes);
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    server.unref();
    return new ConsulProxy(server, sockets, plan);
  }

  private constructor(server: Server, sockets: Set<Socket>, plan: Plan) {
    this.#server = server;
    this.#sockets = sockets;
    this.#plan = plan;
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("The proxy has no port.");
    this.address = `127.0.0.1:${address.port}`;
  }

  get requests(): number {
    return this.#plan.requests;
  }

  /** Resolves when a request goes by that matches. */
  sees(pattern: RegExp): Promise<void> {
    const { watchers } = this.#plan;
    return new Promise((resolve) => {
      const watcher = (request: string): void => {
        if (!pattern.test(request)) return;
        watchers.delete(watcher);
        resolve();
      };
      watchers.add(watcher);
    });
  }

  /** Whatever is under way gets no answer; new connections do. */
  breakConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** The next change reaches Consul, and what it answers is not passed on. */
  loseReply(): void {
    this.#plan.losesReply = true;
  }

  /** The next change gets the answer of a Consul without a leader, and does not reach it. */
  loseLeader(): void {
    this.#plan.hasLeader = false;
  }

  /** Nothing gets out or in any more. */
  cut(): void {
    this.#plan.isCut = true;
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
