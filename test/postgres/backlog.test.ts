/** However much there is of something, a transaction does little of it, and nobody else waits for that. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import { type Baton, BatonError, connect, PartlyRefused, type Queue } from "../../src/index.ts";
import { started } from "../started.ts";
import { refusal } from "./desk.ts";

const server = started(() => startPostgres());

/** More than a transaction moves, and not a multiple of it. */
const MANY = 1_200;
/** What a transaction moves. */
const AT_A_TIME = 500;
/** Rows of a key and of a counter that are written by a call, whatever it moves: some for each level. */
const FEW = 5;

interface Stage {
  readonly baton: Baton;
  readonly cars: Queue<number | string>;
  readonly client: Client;
  readonly url: string;
}

async function stage(context: TestContext, limits: { perKey?: number; perQueue?: number } = {}): Promise<Stage> {
  const url = await server().newDatabase();
  const baton = await connect(url);
  const client = new Client(url);
  await client.connect();
  context.after(async () => {
    await client.end();
    await baton.close({ grace: 0 });
  });
  return { baton, cars: baton.queue("cars", { limits }), client, url };
}

const entries = Array.from({ length: MANY }, (_, payload) => ({ key: "hot", payload }));

async function fallDue(client: Client): Promise<void> {
  await client.query("UPDATE baton.delayed SET due = due - 3600000");
}

async function count(client: Client, table: string): Promise<number> {
  const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM baton.${table}`);
  return Number(rows[0]?.count);
}

/** How many rows of a table the open transaction of the client has changed, and how many it has read through an index. */
async function touched(client: Client, table: string): Promise<{ readonly written: number; readonly read: number }> {
  const { rows } = await client.query<{ written: string; read: string }>(
    "SELECT n_tup_upd AS written, idx_tup_fetch AS read FROM pg_stat_xact_user_tables WHERE schemaname = 'baton' AND relname = $1",
    [table],
  );
  return { written: Number(rows[0]?.written), read: Number(rows[0]?.read) };
}

test(
  "many items of a key that are due arrive a few at a time, by one process",
  { timeout: 60_000 },
  async (context) => {
    const { cars, client, url } = await stage(context);
    await cars.submitMany(entries.map((entry) => ({ ...entry, delay: "1h" })));
    await fallDue(client);
    await client.query("BEGIN");
    await client.query("SELECT * FROM baton.sweep_delayed(0, false)");
    assert.equal(await count(client, "item"), AT_A_TIME);
    for (const table of ["key", "counter"]) assert.ok((await touched(client, table)).written <= FEW, table);
    // Whoever would do the same meanwhile does not wait for it.
    assert.equal((await server().query("SELECT * FROM baton.sweep_delayed(0, false)", url)).rowCount, 0);
    await client.query("ROLLBACK");
  },
);

test("what is submitted while many are due comes behind them, and what is more urgent before", async (context) => {
  const { cars, client } = await stage(context);
  await cars.submitMany(entries.map((entry) => ({ ...entry, delay: "1h" })));
  await fallDue(client);
  const [after, named] = [await cars.submit("hot", "after"), await cars.submit("hot", "named", { id: "named" })];
  assert.ok((await count(client, "item")) <= 2 * AT_A_TIME);
  await cars.submit("hot", "urgent", { level: "high" });
  assert.equal((await refusal(cars.submit("hot", "refused", { mode: "strict" }))).code, "KEY_BUSY");
  assert.equal((await cars.item(after.id))?.id, after.id);
  const worked: (number | string)[] = [];
  const done = Promise.withResolvers<void>();
  cars.work(({ payload }) => {
    worked.push(payload);
    if (worked.length === MANY + 3) done.resolve();
  });
  await done.promise;
  assert.deepEqual(worked, ["urgent", ...entries.map(({ payload }) => payload), "after", "named"]);
  assert.equal((await named.outcome({ timeout: "20s" })).state, "done");
  const { waiting, delayed } = await cars.status();
  assert.deepEqual({ waiting, delayed }, { waiting: 0, delayed: 0 });
});

test("what was committed and has yet to arrive counts towards the limits, however much it is", async (context) => {
  const { cars, client } = await stage(context, { perKey: MANY + 1 });
  await cars.submitMany(entries.map((entry) => ({ ...entry, transaction: client })));
  await cars.submit("hot", "last");
  assert.equal((await refusal(cars.submit("hot", "more"))).code, "KEY_FULL");
  assert.equal((await refusal(cars.submit("hot", "more", { transaction: client }))).code, "KEY_FULL");
  const { waiting, delayed } = await cars.status();
  assert.equal(waiting + delayed, MANY + 1);
});

test("the latest replaces everything that was committed before, and nothing that came after", async (context) => {
  const { cars, client } = await stage(context);
  await cars.submitMany(entries.map((entry) => ({ ...entry, transaction: client })));
  const { replaced } = await cars.submit("hot", "new", { mode: "latest" });
  assert.equal(replaced.length, MANY);
  await cars.submitMany(entries.map((entry) => ({ ...entry, transaction: client })));
  await cars.submit("hot", "newer", { mode: "latest", transaction: client });
  await cars.submit("hot", "after", { transaction: client, level: "high" });
  const { waiting, delayed } = await cars.status();
  assert.deepEqual({ waiting, delayed }, { waiting: 2, delayed: 0 });
});

test("the latest takes the place of many with few rows", async (context) => {
  const { cars, client } = await stage(context);
  await cars.submitMany(entries);
  await client.query("BEGIN");
  await client.query(`SELECT baton.replace_waiting(0, id, ${Number.MAX_SAFE_INTEGER}) FROM baton.key`);
  assert.equal(await count(client, "item"), 0);
  for (const table of ["key", "counter"]) assert.ok((await touched(client, table)).written <= FEW, table);
  await client.query("ROLLBACK");
});

test("one of many that were committed and have yet to arrive can be cancelled", async (context) => {
  const { cars, client } = await stage(context);
  await cars.submitMany(
    entries.map(({ key, payload }) => ({ key, payload, id: `i${payload}`, transaction: client, delay: "1h" })),
  );
  assert.equal(await cars.cancel(`i${MANY - 1}`), "cancelled");
  assert.equal((await cars.status()).delayed, MANY - 1);
});

test("a submission within a transaction does not look at all that nobody has swept yet", async (context) => {
  const { cars, client } = await stage(context);
  await cars.submitMany(entries.map((entry) => ({ ...entry, transaction: client })));
  await client.query("BEGIN");
  await cars.submit("hot", "one", { transaction: client });
  assert.ok((await touched(client, "delayed")).read <= FEW);
  await client.query("ROLLBACK");
  await client.query("BEGIN");
  await cars.submitMany(entries.map(({ key, payload }) => ({ key, payload, transaction: client })));
  assert.ok((await touched(client, "delayed")).read <= FEW);
  await client.query("ROLLBACK");
});

test("of many within a transaction those that there is room for are accepted, and each is told its own", async (context) => {
  const { baton, client } = await stage(context);
  const small = baton.queue("small", { limits: { perKey: 3, perQueue: 6 } });
  await small.submit("a", "there");
  await small.submit("a", "before", { transaction: client });
  const one = (key: string): { key: string; payload: string; transaction: Client } => ({
    key,
    payload: "x",
    transaction: client,
  });
  const named = { id: "same" };
  const many = [one("a"), one("a"), { ...one("b"), ...named }, one("c"), one("c"), one("c"), { ...one("d"), ...named }];
  const refused: unknown = await small.submitMany(many).catch((error: unknown) => error);
  assert.ok(refused instanceof PartlyRefused);
  assert.deepEqual(
    refused.results.map((result) => (result instanceof BatonError ? result.code : result.duplicate)),
    [false, "KEY_FULL", false, false, false, "QUEUE_FULL", true],
  );
  const { waiting, delayed } = await small.status();
  assert.equal(waiting + delayed, 6);
});
