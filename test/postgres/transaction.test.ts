/** Submitting within a transaction of the application. */
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { Client } from "pg";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { type Baton, connect, type Queue } from "../../src/index.ts";
import { refusal } from "./desk.ts";

let server: PostgresServer | undefined;
before(async () => {
  server = await startPostgres();
});
after(() => server?.stop());

interface Stage {
  readonly baton: Baton;
  readonly cars: Queue<string>;
  readonly client: Client;
  readonly url: string;
}

async function stage(context: TestContext): Promise<Stage> {
  const url = (await server?.newDatabase()) ?? "";
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
