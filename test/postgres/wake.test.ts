/** Wakes over LISTEN and NOTIFY. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { postgresWake } from "../../src/engines/postgres/index.ts";
import { until } from "./desk.ts";

const WITHIN_MS = 20_000;

let server: PostgresServer | undefined;
before(async () => {
  server = await startPostgres();
});
after(() => server?.stop());

function running(): PostgresServer {
  if (server === undefined) throw new Error("The server was not started.");
  return server;
}

test("what is published is heard, also after the connection was killed", { timeout: 60_000 }, async () => {
  const sender = postgresWake(running().url);
  const receiver = postgresWake(running().url);
  const heard: string[] = [];
  let missed = 0;
  const stop = await receiver.listen(
    "baton.test",
    (text) => heard.push(text),
    () => (missed += 1),
  );
  await sender.publish([
    { channel: "baton.test", text: "one" },
    { channel: "baton.other", text: "nobody" },
    { channel: "baton.test", text: "two 🚗" },
  ]);
  await until("two texts", WITHIN_MS, async () => (heard.length === 2 ? true : undefined));
  assert.deepEqual(heard, ["one", "two 🚗"]);
  await running().query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
  await until("the word that some may have been missed", WITHIN_MS, async () => (missed > 0 ? true : undefined));
  await sender.publish([{ channel: "baton.test", text: "three" }]);
  await until("a third text", WITHIN_MS, async () => (heard.length === 3 ? true : undefined));
  await stop();
  await sender.publish([{ channel: "baton.test", text: "four" }]);
  await Promise.all([sender.close(), receiver.close()]);
  assert.equal(heard.length, 3);
});
