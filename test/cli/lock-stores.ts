/** The stores that the lock commands are tried on. */
import type { TestContext } from "node:test";
import { startConsulServer } from "../../servers/consul-server.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import { draw } from "../kit/draw.ts";
import { started } from "../started.ts";
import { Desk } from "./baton-command.ts";

export interface LockStore {
  readonly name: string;
  desk(test: TestContext): Desk;
}

interface Server {
  readonly url: string;
  stop(): Promise<void>;
}

const SERVERS: Readonly<Record<string, () => Promise<Server>>> = {
  NATS: () => startNatsServer(),
  Consul: startConsul,
};

/** A file, and one of the servers. Inside of a `describe`: the servers live as long as its tests. */
export function lockStores(): readonly LockStore[] {
  const servers = draw.some("servers under the lock commands", Object.entries(SERVERS), 1, ([name]) => name);
  return [{ name: "SQLite", desk: (test) => new Desk(test) }, ...servers.map(([name, start]) => storeOn(name, start))];
}

function storeOn(name: string, start: () => Promise<Server>): LockStore {
  const server = started(start);
  return { name, desk: (test) => new Desk(test, server().url) };
}

/** Consul keeps a session for ten seconds at least, and for up to twice as long as asked, unless its configuration says otherwise. */
async function startConsul(): Promise<Server> {
  const server = await startConsulServer({ config: { session_ttl_min: "1s" } });
  return { url: `consul://${server.address}/test?shortest-lease=1s`, stop: () => server.stop() };
}
