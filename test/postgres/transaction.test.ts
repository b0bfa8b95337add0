/** Submitting within a transaction of the application. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client, Pool } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import { type Baton, connect, type Queue } from "../../src/index.ts";
import { started } from "../started.ts";
import { refusal } from "./desk.ts";

const server = started(() => startPostgres());

interface Stage {
  readonly baton: Baton;
  readonly cars: Queue<string>;
  readonly client: Client;
  readonly url: string;
}

async function stage(context: TestContext): Promise<Stage> {
  const url = await server().newDatabase();
  const baton = await connect(url);
  const client = new Client(url);
  await client.connect();
  await client.query("CREATE TABLE car (name text)");
  context.after(async () => {
    await client.end();
    await baton.close({ grace: 0 });
  });
  return { baton, cars: baton.queue<string>("cars"), client, url };
}

test("what is submitted in a transaction is there when it has been committed, not before", async (context) => {
  const { cars, client } = await stage(context);
  const worked: string[] = [];
  const done = Promise.withResolvers<void>();
  cars.work((item) => {
    worked.push(item.payload);
    if (item.payload === "after") done.resolve();
  });
  await client.query("BEGIN");
  await client.query("INSERT INTO car VALUES ('car1')");
  const receipt = await cars.submit("car1", "within", { transaction: client, id: "order-1" });
  await cars.submit("car2", "without");
  assert.equal(await cars.item("order-1"), undefined, "nobody sees it yet");
  await client.query("COMMIT");
  await cars.submit("car1", "after");
  await done.promise;
  assert.deepEqual(worked.toSorted(), ["after", "within", "without"]);
  assert.ok(worked.indexOf("within") < worked.indexOf("after"), "what was committed before goes first");
  assert.equal((await receipt.outcome({ timeout: "10s" })).state, "done");
});

test("a transaction that is rolled back leaves nothing and wakes nobody", async (context) => {
  const { cars, client, url } = await stage(context);
  await cars.levels();
  const listener = new Client(url);
  await listener.connect();
  context.after(() => listener.end());
  const heard: string[] = [];
  listener.on("notification", ({ payload }) => heard.push(payload ?? ""));
  await listener.query("LISTEN baton_baton");

  await client.query("BEGIN");
  const receipt = await cars.submit("car1", "never", { transaction: client, id: "order-1" });
  assert.equal(receipt.id, "order-1");
  await client.query("ROLLBACK");
  await client.query("BEGIN");
  await cars.submit("car1", "once", { transaction: client, id: "order-1" });
  await client.query("COMMIT");
  // What the second transaction says is heard after whatever the first would have said.
  while (heard.length === 0) await listener.query("SELECT 1");
  assert.equal(heard.length, 1);
  const again = await cars.submit("car1", "again", { id: "order-1" });
  assert.ok(again.duplicate, "the id of the transaction that was committed is known");
  assert.equal((await cars.status()).waiting + (await cars.status()).delayed, 1);
});

test("an open transaction holds up nobody, not even on its own key", async (context) => {
  const { cars, client } = await stage(context);
  await client.query("BEGIN");
  await cars.submit("car1", "within", { transaction: client });
  const done = Promise.withResolvers<string>();
  cars.work((item) => done.resolve(item.payload));
  await cars.submit("car1", "meanwhile");
  assert.equal(await done.promise, "meanwhile");
  await client.query("ROLLBACK");
});

test("many at once, delays, and clients that answer with the rows alone", async (context) => {
  const { cars, client } = await stage(context);
  const prisma = {
    query: async (text: string, values: unknown[]): Promise<unknown> => (await client.query(text, values)).rows,
  };
  await client.query("BEGIN");
  const receipts = await cars.submitMany([
    { key: "a", payload: "1", transaction: prisma },
    { key: "a", payload: "2", transaction: prisma },
    { key: "b", payload: "3", transaction: prisma, delay: "1h", id: "late" },
  ]);
  await client.query("COMMIT");
  assert.equal(receipts.length, 3);
  const worked: string[] = [];
  const done = Promise.withResolvers<void>();
  cars.work((item) => {
    if (worked.push(item.payload) === 2) done.resolve();
  });
  await done.promise;
  assert.deepEqual(worked, ["1", "2"]);
  assert.equal((await cars.item("late"))?.state, "delayed");
});

test("what is no transaction is refused, and nothing is submitted", async (context) => {
  const { cars, url } = await stage(context);
  const pool = new Pool({ connectionString: url });
  const pooled = await refusal(cars.submit("car1", "x", { transaction: pool }));
  assert.equal(pooled.code, "INVALID_INPUT");
  assert.match(pooled.message, /pool\.connect\(\)/);
  await pool.end();
  for (const transaction of [null, "BEGIN", {}]) {
    // @ts-expect-error -- as from JavaScript, whose compiler does not mind
    const one = refusal(cars.submit("car1", "x", { transaction }));
    assert.equal((await one).code, "INVALID_INPUT");
    // @ts-expect-error -- the same
    const many = refusal(cars.submitMany([{ key: "car1", payload: "x" }], { transaction }));
    assert.equal((await many).code, "INVALID_INPUT");
  }
  assert.equal((await cars.status()).waiting, 0);
});

test("an id in an open transaction holds up only those who submit the same", { timeout: 60_000 }, async (context) => {
  const { cars, client } = await stage(context);
  await client.query("BEGIN");
  await cars.submit("car1", "within", { transaction: client, id: "order-1" });
  let answered = false;
  const same = cars.submit("car1", "again", { id: "order-1" }).finally(() => (answered = true));
  // In the same batch, and in later ones.
  await Promise.all([cars.submit("car2", "x", { id: "order-2" }), cars.submit("car1", "y")]);
  await cars.submit("car3", "z", { id: "order-3" });
  assert.equal(answered, false, "nobody knows yet whether it is a duplicate");
  await client.query("COMMIT");
  assert.ok((await same).duplicate);
  await client.query("BEGIN");
  await cars.submit("car1", "within", { transaction: client, id: "order-4" });
  const alone = cars.submit("car1", "instead", { id: "order-4" });
  await cars.submit("car2", "x");
  await client.query("ROLLBACK");
  assert.equal((await alone).duplicate, false, "the item is new");
});

test("what was committed is counted, and listed, before anybody works on it", async (context) => {
  const { cars, client } = await stage(context);
  await client.query("BEGIN");
  for (const key of ["a", "b", "c"]) await cars.submit(key, key, { transaction: client });
  await cars.submit("d", "d", { transaction: client, delay: "1h" });
  await client.query("COMMIT");
  const { waiting, delayed } = await cars.status();
  assert.deepEqual([waiting, delayed], [3, 1]);
  await client.query("BEGIN");
  await cars.submit("e", "e", { transaction: client });
  await client.query("COMMIT");
  assert.deepEqual(
    (await cars.keys()).map(({ key }) => key),
    ["a", "b", "c", "d", "e"],
  );
});

test("what was submitted in a transaction can be cancelled like anything else", async (context) => {
  const { cars, client } = await stage(context);
  await cars.submit("car2", "there", { delay: "2h", id: "there" });
  await client.query("BEGIN");
  await cars.submit("car1", "late", { transaction: client, delay: "1h", id: "late" });
  await cars.submit("car1", "now", { transaction: client, id: "now" });
  await cars.submit("car2", "later", { transaction: client, delay: "1h", id: "later" });
  assert.equal(await cars.cancel("late"), "missing", "nobody sees it yet");
  await client.query("COMMIT");
  for (const id of ["late", "now", "later"]) {
    assert.equal(await cars.cancel(id), "cancelled", id);
    assert.equal((await cars.item(id))?.state, "cancelled");
  }
  const { waiting, delayed } = await cars.status();
  assert.deepEqual([waiting, delayed], [0, 1]);
  assert.equal(await cars.cancel("there"), "cancelled");
  assert.deepEqual(await cars.keys(), []);
});

test("of what is delayed in a transaction and what comes after it, the latest stays", async (context) => {
  const { baton, client } = await stage(context);
  const settings = baton.queue<string>("settings", { mode: "latest" });
  await client.query("BEGIN");
  await settings.submit("k", "oldest", { transaction: client, delay: "1h", id: "oldest" });
  await client.query("COMMIT");
  await settings.submit("k", "older", { id: "older" });
  assert.equal((await settings.item("oldest"))?.state, "replaced");
  await client.query("BEGIN");
  await settings.submit("k", "old", { transaction: client, delay: "1h", id: "old" });
  await settings.submit("k", "new", { transaction: client, id: "new" });
  await client.query("COMMIT");
  const { waiting, delayed } = await settings.status();
  assert.deepEqual([waiting, delayed], [1, 0]);
  assert.equal((await settings.item("old"))?.state, "replaced");
  assert.equal((await settings.item("older"))?.state, "replaced");
});

test("limits count what the transaction itself has submitted", async (context) => {
  const { baton, client } = await stage(context);
  const small = baton.queue<number>("small", { limits: { perKey: 3, perQueue: 5 } });
  await client.query("BEGIN");
  for (let count = 0; count < 3; count += 1) await small.submit("k", count, { transaction: client });
  assert.equal((await refusal(small.submit("k", 3, { transaction: client }))).code, "KEY_FULL");
  for (let count = 0; count < 2; count += 1) await small.submit("l", count, { transaction: client });
  assert.equal((await refusal(small.submit("m", 0, { transaction: client }))).code, "QUEUE_FULL");
  await client.query("COMMIT");
  assert.equal((await small.status()).waiting, 5);
});

test("what a library wraps, or says in its own words, is told as it is", async (context) => {
  const { cars, client } = await stage(context);
  await client.query("BEGIN READ ONLY");
  const wrapped = {
    query: (text: string, values: unknown[]): Promise<unknown> =>
      client.query(text, values).catch((cause: unknown) => {
        throw new Error("Failed query", { cause });
      }),
  };
  assert.equal((await refusal(cars.submit("car1", "wash", { transaction: wrapped }))).code, "STORE_READ_ONLY");
  await client.query("ROLLBACK");
  const strange = { query: () => Promise.reject(new Error("P2010")) };
  const { code, message } = await refusal(cars.submit("car1", "wash", { transaction: strange }));
  assert.equal(code, "OUTCOME_UNKNOWN");
  assert.match(message, /whose query\(\) failed \(P2010\)/);
});

test("what cannot be promised within a transaction is refused", async (context) => {
  const { cars, client } = await stage(context);
  await client.query("BEGIN");
  const strict = await refusal(cars.submit("car1", "x", { transaction: client, mode: "strict" }));
  assert.equal(strict.code, "INVALID_INPUT");
  await client.query("ROLLBACK");
  const memory = await connect("memory:");
  context.after(() => memory.close());
  const { code, message } = await refusal(memory.queue("q").submit("k", 1, { transaction: client }));
  assert.equal(code, "INVALID_INPUT");
  assert.match(message, /memory/);
});
