/** The stores that the lock commands are tried on. */
import { after, before, type TestContext } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { Desk } from "./baton-command.ts";

export interface LockStore {
  readonly name: string;
  desk(test: TestContext): Desk;
}

/** Inside of a `describe`: its server, if it needs one, lives as long as the tests of that. */
export function lockStores(): readonly LockStore[] {
  return [{ name: "SQLite", desk: (test) => new Desk(test) }, natsStore()];
}

function natsStore(): LockStore {
  let server: NatsServer | undefined;
  before(async () => {
    server = await startNatsServer();
  });
  after(() => server?.stop());
  return { name: "NATS", desk: (test) => new Desk(test, server?.url) };
}
