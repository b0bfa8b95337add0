/** Wakes over LISTEN and NOTIFY; and an engine whose wakes go another way. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { type ForeignBell, postgresEngine, postgresWake } from "../../src/engines/postgres/index.ts";
import { connect } from "../../src/index.ts";
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

test("an engine with another bell rings and hears that one", { timeout: 60_000 }, async () => {
  const listeners = new Set<Parameters<ForeignBell["listen"]>[0]>();
  let rung = 0;
  const bell: ForeignBell = {
    work(queue) {
      rung += 1;
      for (const listener of listeners) listener.work(queue);
    },
    outcomes(queue) {
      for (const listener of listeners) listener.outcomes(queue);
    },
    async listen(heard) {
      await Promise.resolve();
      listeners.add(heard);
      return async () => {
        await Promise.resolve();
        listeners.delete(heard);
      };
    },
  };
  const open = async () => await connect(await postgresEngine({ connection: running().url, schema: "belled", bell }));
  const [submitting, working] = [await open(), await open()];
  const seen: number[] = [];
  working.queue<number>("cars").work((item) => {
    seen.push(item.payload);
  });
  for (let count = 1; count <= 5; count += 1) {
    const receipt = await submitting.queue<number>("cars").submit("car1", count, { id: `item-${count}` });
    assert.equal((await receipt.outcome({ timeout: "20s" })).state, "done");
  }
  assert.deepEqual(seen, [1, 2, 3, 4, 5]);
  assert.ok(rung >= 5);
  const { rows } = await running().query("SELECT FROM belled.sleeper WHERE queue > 0");
  assert.equal(rows.length, 0, "nobody says in the store that he sleeps");
  await Promise.all([submitting.close(), working.close()]);
});
