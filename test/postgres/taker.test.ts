/** An item that comes alone where somebody waits in the same process: it is handed out as it is written. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { startPostgres } from "../../servers/postgres.ts";
import type { Engine, Grant, SubmitResult } from "../../src/engine/port.ts";
import { claim, entry } from "../cars.ts";
import { started } from "../started.ts";
import { until } from "../kit/until.ts";
import { refusal } from "./desk.ts";
import { type LossyStage, openLossyStage } from "./lossy-stage.ts";

const WITHIN_MS = 20_000;
const ROUNDS = 150;

const common = started(() => startPostgres());

async function open(context: TestContext): Promise<LossyStage> {
  const stage = await openLossyStage(context, common());
  // Whatever is put on the list of ready keys is noted: what is handed out at once never is.
  await stage.watcher.query(
    `CREATE TABLE listed (name text);
     CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO listed SELECT name FROM baton.key WHERE id = NEW.key; RETURN NULL; END';
     CREATE TRIGGER note AFTER INSERT ON baton.ready FOR EACH ROW EXECUTE FUNCTION note()`,
  );
  return stage;
}

const patience = (): AbortSignal => AbortSignal.timeout(WITHIN_MS);

/** Resolves when somebody waits, with what he will get. */
async function waiting(
  { engine, watcher }: LossyStage,
  signal = patience(),
): Promise<{ grants: Promise<readonly Grant[]> }> {
  const grants = engine.claim({ ...claim, signal });
  grants.catch(() => undefined);
  await until(async () => {
    const { rows } = await watcher.query("SELECT FROM baton.sleeper WHERE kind = 0");
    return rows.length > 0;
  }, "somebody who sleeps");
  return { grants };
}

async function listed({ watcher }: LossyStage): Promise<readonly string[]> {
  const { rows } = await watcher.query<{ name: string }>("SELECT name FROM listed");
  return rows.map(({ name }) => name);
}

async function slow({ watcher }: LossyStage): Promise<void> {
  await watcher.query(
    `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END';
     CREATE TRIGGER slow AFTER INSERT ON baton.item FOR EACH ROW EXECUTE FUNCTION slow()`,
  );
}

async function underWay({ watcher }: LossyStage): Promise<void> {
  await until(async () => {
    const { rows } = await watcher.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'",
    );
    return rows.length > 0;
  }, "a submission that takes its time");
}

function idOf([result]: readonly SubmitResult[]): string {
  assert.ok(result?.ok);
  return result.accepted.id;
}

test("it is handed out as it was submitted, and ends like any other", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other } = stage;
  const { grants } = await waiting(stage);
  const submitted = {
    ...entry,
    key: "a",
    level: "high",
    headers: { trace: "1" },
    payload: { type: "x/y", body: "a\0b" },
  };
  const id = idOf(await engine.submit([submitted]));
  const [grant] = await grants;
  assert.ok(grant !== undefined);
  const { submittedAt, ...item } = grant.item;
  const { queue, key, level, headers, payload } = submitted;
  assert.deepEqual(item, { id, queue, key, level, headers, payload, attempt: 1 });
  assert.deepEqual(await listed(stage), []);
  const [known] = await other.keys({ queue: "cars", limit: 10 });
  assert.equal(known?.state, "running");
  const [renewed] = await engine.renew([{ lease: grant.lease, leaseMs: claim.leaseMs }]);
  assert.equal(renewed?.ok, true, "the lease can be renewed");
  assert.deepEqual(await engine.settle([{ lease: grant.lease, ending: { type: "done" } }]), ["settled"]);
  const [report] = await other.queues({ queue: "cars" });
  assert.equal(report?.running, 0);
  assert.ok(submittedAt > 0);
});

test("its lease runs out like any other", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other, watcher } = stage;
  const grants = engine.claim({ ...claim, leaseMs: 500, signal: patience() });
  await until(async () => (await watcher.query("SELECT FROM baton.sleeper")).rowCount, "somebody who sleeps");
  await engine.submit([{ ...entry, key: "a" }]);
  const [first] = await grants;
  const [second] = await other.claim({ ...claim, signal: patience() });
  assert.ok(first !== undefined && second !== undefined);
  assert.equal(second.item.attempt, 2);
  assert.ok(second.lease.fence > first.lease.fence);
  assert.deepEqual(await engine.settle([{ lease: first.lease, ending: { type: "done" } }]), ["lost"]);
});

test("a queue that is paused hands out nothing", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine } = stage;
  const { grants } = await waiting(stage);
  await engine.pause({ queue: "cars", paused: true });
  await engine.submit([{ ...entry, key: "a" }]);
  assert.deepEqual(await listed(stage), ["a"]);
  await engine.pause({ queue: "cars", paused: false });
  assert.equal((await grants)[0]?.item.key, "a");
});

test("where something waits, a step chooses", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine } = stage;
  await engine.pause({ queue: "cars", key: "held back", paused: true });
  await engine.submit([{ ...entry, key: "held back", level: "high" }]);
  const { grants } = await waiting(stage);
  await engine.submit([{ ...entry, key: "a" }]);
  assert.equal((await grants)[0]?.item.key, "a");
  assert.deepEqual(await listed(stage), ["a"]);
});

test("a full queue refuses it", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine } = stage;
  await waiting(stage);
  await engine.submit([{ ...entry, key: "later", delayMs: 60_000 }]);
  const [refused] = await engine.submit([{ ...entry, key: "a", queueLimit: 1 }]);
  assert.ok(refused?.ok === false);
  assert.equal(refused.error.code, "QUEUE_FULL");
});

test("one whose reply was lost is given back untried", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, way, watcher } = stage;
  const { grants } = await waiting(stage);
  const lost = way.lose({ word: "baton_submit" });
  assert.equal((await refusal(engine.submit([{ ...entry, key: "a" }]))).code, "OUTCOME_UNKNOWN");
  await lost;
  const { rows } = await watcher.query<{ fence: string }>("SELECT max(fence) AS fence FROM baton.key");
  const [grant] = await grants;
  assert.equal(grant?.item.attempt, 1);
  assert.ok(grant.lease.fence > Number(rows[0]?.fence) || Number(rows[0]?.fence) === 0);
});

test("whoever gives up while it is written gets it, or nothing", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other } = stage;
  await slow(stage);
  for (const paused of [false, true]) {
    const giveUp = new AbortController();
    const { grants } = await waiting(stage, giveUp.signal);
    await other.pause({ queue: "cars", paused });
    const submitted = engine.submit([{ ...entry, key: `paused ${paused}` }]);
    await underWay(stage);
    giveUp.abort();
    const got = await grants;
    assert.deepEqual(
      got.map(({ item }) => item.key),
      paused ? [] : ["paused false"],
    );
    await submitted;
    for (const { lease } of got) await engine.settle([{ lease, ending: { type: "done" } }]);
  }
});

test("a handle that closes while it is written lets whoever waits go", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other } = stage;
  await slow(stage);
  const { grants } = await waiting(stage);
  await other.pause({ queue: "cars", paused: true });
  const submitted = engine.submit([{ ...entry, key: "a" }]);
  await underWay(stage);
  await engine.close();
  assert.deepEqual(await grants, []);
  idOf(await submitted);
});

test("G2: fences rise where several submit, take and end the same key", { timeout: 60_000 }, async (context) => {
  const { engine, other } = await open(context);
  const fences: number[] = [];
  const work = async (one: Engine): Promise<void> => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const grants = one.claim({ ...claim, signal: patience() });
      await one.submit([{ ...entry, key: "same", keyLimit: 1_000, queueLimit: 1_000 }]);
      for (const { lease } of await grants) {
        fences.push(lease.fence);
        assert.deepEqual(await one.settle([{ lease, ending: { type: "done" } }]), ["settled"]);
      }
    }
  };
  await Promise.all([work(engine), work(other)]);
  assert.equal(fences.length, 2 * ROUNDS);
  assert.deepEqual(
    fences,
    fences.toSorted((a, b) => a - b),
  );
});
