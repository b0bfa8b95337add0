import { Socket } from "node:net";
import type { ClientConfig, Pool } from "pg";
import { systemClock } from "../../domain/clock.ts";
import { loadPg } from "./client-library.ts";
import type { Connection, Connections } from "./link.ts";

/** A server that does not answer at all is not waited for any longer. */
const CONNECT_MS = 10_000;

/** One that answers nothing for so long is given up: no statement of ours takes a tenth of it, and leases run out meanwhile. */
const SILENT_MS = 20_000;
/** A server that does not close a connection which we ended is not waited for any longer. */
const END_MS = 500;
/** How soon the system asks a quiet peer whether it is still there; by default after two hours. */
const KEEP_ALIVE_MS = 10_000;

/** Connections of our own. */
export function ownConnections(connection: string | ClientConfig): Connections {
  const given: ClientConfig = typeof connection === "string" ? { connectionString: connection } : connection;
  const config: ClientConfig = {
    application_name: "baton",
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    query_timeout: SILENT_MS,
    connectionTimeoutMillis: CONNECT_MS,
    ...given,
  };
  let where = "PostgreSQL";
  return {
    get where() {
      return where;
    },
    areOurs: true,
    async connect(signal): Promise<Connection> {
      const { Client } = await loadPg();
      signal?.throwIfAborted();
      const socket = new Socket();
      const client = new Client({ stream: () => socket, ...config });
      where = `PostgreSQL at ${client.host}:${client.port}/${client.database ?? ""}`;
      // Whoever uses it listens too; one that nobody uses any more must not end the process.
      client.on("error", () => undefined);
      // The client itself cannot be told to stop connecting.
      const callOff = (): void => void socket.destroy();
      signal?.addEventListener("abort", callOff, { once: true });
      try {
        await client.connect();
      } finally {
        signal?.removeEventListener("abort", callOff);
      }
      return {
        client,
        release() {
          client.end().catch(() => undefined);
          // A server that stands still would keep this process alive.
          systemClock.setTimer(END_MS, callOff);
        },
      };
    },
  };
}

/** Two connections of the application's pool, which stays open. */
export function pooledConnections(pool: Pool): Connections {
  return {
    where: "PostgreSQL of the application's pool",
    areOurs: false,
    ...(pool.options.query_timeout === undefined ? { silentMs: SILENT_MS } : {}),
    async connect(): Promise<Connection> {
      await loadPg();
      const client = await pool.connect();
      client.on("error", () => undefined);
      let released = false;
      return {
        client,
        release(broken) {
          if (released) return;
          released = true;
          client.release(broken);
        },
      };
    },
  };
}
