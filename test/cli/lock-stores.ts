/** The stores that the lock commands are tried on. */
import type { TestContext } from "node:test";
import { startConsulServer } from "../../servers/consul-server.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
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

/** Inside of a `describe`: the servers live as long as its tests. */
export function lockStores(): readonly LockStore[] {
  return [
    { name: "SQLite", desk: (test) => new Desk(test) },
    storeOn("NATS", () => startNatsServer()),
    storeOn("Consul", startConsul),
  ];
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
