/** What happens when somebody has to wait for a row, or many wait for work. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { claim, entry } from "../cars.ts";
import { until } from "../kit/until.ts";
import { PostgresDesk, refusal } from "./desk.ts";
import { started } from "../started.ts";

const WITHIN_MS = 20_000;

const common = started(() => startPostgres());

test("a key is not handed out under a timer that is gone", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  await engine.submit([{ ...entry, key: "k" }]);
  await engine.submit([{ ...entry, key: "x" }]);
  const signal = AbortSignal.timeout(WITHIN_MS);
  const [k] = await engine.claim({ ...claim, leaseMs: 1_500, signal });
  const [x] = await engine.claim({ ...claim, signal });
  assert.ok(k !== undefined && x !== undefined);
  await engine.settle([{ lease: k.lease, ending: { type: "release" } }]);
  // The timer of k is there still. Somebody has the row of x, and whoever settles x and asks for more waits for him.
  const blocker = new Client(url);
  await blocker.connect();
  await blocker.query("BEGIN");
  await blocker.query("SELECT FROM baton.key WHERE name = 'x' FOR UPDATE");
  const settled = engine.settle([{ lease: x.lease, ending: { type: "done" } }]);
  const next = engine.claim({ ...claim, leaseMs: 3_000, signal });
  const due = "SELECT FROM baton.timer WHERE at <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
  await until(async () => (await common().query(due, url)).rowCount === 1, "the timer");
  await common().query("SELECT * FROM baton.sweep_timers(0)", url);
  await blocker.query("COMMIT");
  await blocker.end();
  assert.deepEqual(await settled, ["settled"]);
  const [again] = await next;
  assert.equal(again?.lease.key, "k");
  const timed = `SELECT FROM baton.key k, baton.timer t WHERE k.state = 2 AND k.id = ANY (t.keys) AND k.timer = t.at AND k.at >= t.at`;
  assert.equal((await common().query(timed, url)).rowCount, 1, "a lease has a timer");
  await common().query("DELETE FROM baton.timer", url);
  const findings = await engine.check();
  assert.ok(findings.some(({ severity, subject }) => severity === "error" && subject === "Leases"));
  await engine.close();
});

test("a signal that outlives its claims and holds does not keep them", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  const { signal } = new AbortController();
  for (let count = 0; count < 3; count += 1) {
    const waiting = engine.claim({ ...claim, signal });
    await engine.submit([{ ...entry, key: "k" }]);
    const [grant] = await waiting;
    assert.ok(grant !== undefined);
    const hold = engine.hold({ queue: "cars", key: "k", worker: "h", leaseMs: 60_000, signal });
    await engine.settle([{ lease: grant.lease, ending: { type: "done" } }]);
    const lease = await hold;
    assert.ok(lease !== undefined);
    await engine.settle([{ lease, ending: { type: "release" } }]);
  }
  assert.equal(getEventListeners(signal, "abort").length, 0);
  await engine.close();
});

test("a key that is resumed stands where those who look for work find it", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  await engine.pause({ queue: "cars", key: "old", paused: true });
  await engine.submit([{ ...entry, key: "old" }]);
  await engine.submit([{ ...entry, key: "young" }]);
  await engine.pause({ queue: "cars", key: "old", paused: false });
  const { rows } = await common().query(
    "SELECT k.name FROM baton.ready r JOIN baton.key k ON k.id = r.key AND k.place = r.place ORDER BY r.place",
    url,
  );
  assert.deepEqual(
    rows.map((row) => row["name"]),
    ["young", "old"],
  );
  await engine.close();
});

test("however many wait, those who work can tell them", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  await common().query(
    `INSERT INTO baton.sleeper SELECT q.id, kind, 1000000000 + g, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 60000
     FROM baton.queue q, generate_series(1, 2000) g, generate_series(0, 1) kind`,
    url,
  );
  await engine.submit([{ ...entry, key: "k", id: "item" }]);
  const [grant] = await engine.claim({ ...claim, signal: AbortSignal.timeout(WITHIN_MS) });
  assert.ok(grant !== undefined);
  assert.deepEqual(await engine.settle([{ lease: grant.lease, ending: { type: "done" } }]), ["settled"]);
  await engine.pause({ queue: "cars", paused: true });
  await engine.pause({ queue: "cars", paused: false });
  await engine.close();
});

test(
  "a queue whose tables were emptied under a process is one that was deleted",
  { timeout: 60_000 },
  async (context) => {
    const desk = await PostgresDesk.withDatabase(context, common());
    const engine = await openPostgresUrl(desk.url);
    const cars = (await desk.connect()).queue<number>("cars");
    await cars.submit("a", 1);
    await engine.declare({ queue: "cars" });
    await common().query("TRUNCATE baton.queue, baton.key, baton.item, baton.ready, baton.counter", desk.url);
    // An engine refuses, and does not fail in a way that nobody can act upon.
    const one = { ...entry, key: "b" };
    for (const many of [[one], [one, { ...one, key: "c" }]])
      assert.equal((await refusal(engine.submit(many))).code, "QUEUE_MISSING");
    // The client makes the queue anew.
    await cars.submit("b", 2);
    await cars.submitMany([
      { key: "c", payload: 3 },
      { key: "d", payload: 4 },
    ]);
    assert.equal((await cars.status()).waiting, 3);
    await engine.close();
  },
);

test("counters of several queues are locked in one order", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const engine = await openPostgresUrl(url);
  const [first, second] = ["a", "b"] as const;
  for (const queue of [first, second]) {
    await engine.declare({ queue });
    await engine.submit([{ ...entry, queue, key: "k" }]);
  }
  const counterOf = (queue: string): string =>
    `SELECT FROM baton.counter WHERE queue = (SELECT id FROM baton.queue WHERE name = '${queue}') FOR UPDATE SKIP LOCKED`;
  const blocker = new Client(url);
  await blocker.connect();
  await blocker.query("BEGIN");
  assert.equal((await blocker.query(counterOf(second))).rowCount, 1);
  // It asks for the second queue first, and still has the counter of the first when it waits for that of the second.
  const submitted = engine.submit([
    { ...entry, queue: second, key: "k", id: "b" },
    { ...entry, queue: first, key: "k", id: "a" },
  ]);
  await until(
    async () => ((await common().query(counterOf(first), url)).rowCount === 0 ? true : undefined),
    "the counter of the first queue",
  );
  await blocker.query("COMMIT");
  await blocker.end();
  assert.ok((await submitted).every(({ ok }) => ok));
  await engine.close();
});
