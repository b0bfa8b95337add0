/** Runs of items where PostgreSQL has windows of its own: replies that are lost, rows that move, places that change. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import { connect } from "../../src/index.ts";
import type { EndedItem, Engine, Grant } from "../../src/engine/port.ts";
import { claim as oneClaim, entry } from "../cars.ts";
import { until } from "../kit/until.ts";
import { started } from "../started.ts";
import { refusal } from "./desk.ts";
import { type LossyStage, openLossyStage } from "./lossy-stage.ts";

const WITHIN_MS = 20_000;
const KEEP_MS = 3_600_000;
const FAILURE = { message: "not yet" };

const common = started(() => startPostgres());

async function open(context: TestContext, ids: readonly string[]): Promise<LossyStage> {
  const stage = await openLossyStage(context, common());
  await stage.engine.submit(Array.from(ids, (id) => ({ ...entry, key: "k", id, keepMs: KEEP_MS })));
  return stage;
}

async function claimRun(engine: Engine, items = 10, leaseMs = 60_000): Promise<Grant> {
  const [grant] = await engine.claim({ ...oneClaim, items, leaseMs, signal: AbortSignal.timeout(WITHIN_MS) });
  assert.ok(grant !== undefined, "the key was handed out");
  return grant;
}

const idsOf = ({ item, behind = [] }: Grant): string[] => [item, ...behind].map(({ id }) => id);

const done = (...ids: readonly string[]): EndedItem[] => ids.map((id) => ({ id, ending: { type: "done" } }));

async function yieldHead(engine: Engine): Promise<string> {
  const { lease, item } = await claimRun(engine, 1);
  await engine.settle([{ lease, ending: { type: "retry", delayMs: KEEP_MS, place: "yield", failure: FAILURE } }]);
  return item.id;
}

/** What has yielded first is due now, and waits. */
async function comeBack({ engine, watcher }: LossyStage, id: string): Promise<void> {
  await watcher.query("UPDATE baton.delayed SET due = 0 WHERE n = (SELECT n FROM baton.delayed ORDER BY n LIMIT 1)");
  await until(async () => (await engine.find({ queue: "cars", id }))?.state === "waiting", `the return of ${id}`);
}

async function statesOf(engine: Engine, ids: readonly string[]): Promise<unknown[]> {
  const reports = await Promise.all(ids.map((id) => engine.find({ queue: "cars", id })));
  return reports.map((report) => report?.state);
}

test("a run whose settlement lost its reply has ended once", { timeout: 60_000 }, async (context) => {
  const { engine, way } = await open(context, ["a", "b", "c"]);
  const { lease } = await claimRun(engine);
  const settlement = { lease, ended: done("a"), ending: { type: "dead", failure: FAILURE } } as const;
  const lost = way.lose({ word: "baton_step" });
  assert.equal((await refusal(engine.settle([settlement]))).code, "OUTCOME_UNKNOWN");
  await lost;
  assert.deepEqual(await engine.settle([settlement]), ["lost"]);
  assert.deepEqual(await statesOf(engine, ["a", "b", "c"]), ["done", "dead", "waiting"]);
  assert.deepEqual(idsOf(await claimRun(engine)), ["c"]);
});

test("a renewal that ends items and lost its reply is told again", { timeout: 60_000 }, async (context) => {
  const { engine, way } = await open(context, ["a", "b", "c"]);
  const { lease } = await claimRun(engine);
  const renewal = { lease, leaseMs: 60_000, ended: done("a") };
  const lost = way.lose({ word: "baton_renew" });
  assert.equal((await refusal(engine.renew([renewal]))).code, "OUTCOME_UNKNOWN");
  await lost;
  assert.equal((await engine.renew([renewal]))[0]?.ok, true);
  assert.deepEqual(await statesOf(engine, ["a", "b", "c"]), ["done", "running", "waiting"]);
  assert.deepEqual(await engine.settle([{ lease, ended: done("a"), ending: { type: "release" } }]), ["settled"]);
  const { item, behind } = await claimRun(engine);
  assert.deepEqual([item.id, item.attempt, behind?.length], ["b", 1, 1]);
});

test("a run whose grant lost its reply is given back whole", { timeout: 60_000 }, async (context) => {
  const { engine, way } = await open(context, ["a", "b", "c"]);
  const lost = way.lose({ word: "baton_step", leastBytes: 300 });
  assert.equal((await refusal(claimRun(engine))).code, "OUTCOME_UNKNOWN");
  await lost;
  const again = await claimRun(engine);
  assert.deepEqual([idsOf(again), again.item.attempt, again.item.losses], [["a", "b", "c"], 1, undefined]);
});

test("what a batch says of one run it does not say of others", { timeout: 60_000 }, async (context) => {
  const { engine } = await open(context, ["a", "b", "c"]);
  await engine.declare({ queue: "vans" });
  for (const [key, id] of ["kd", "ke", "lf", "lg"].map((both) => both.split("")))
    await engine.submit([{ ...entry, queue: "vans", key: key ?? "", id: id ?? "", keepMs: KEEP_MS }]);
  const signal = AbortSignal.timeout(WITHIN_MS);
  const vans = await engine.claim({ ...oneClaim, queue: "vans", max: 2, items: 2, signal });
  const grants = [await claimRun(engine), ...vans];
  const renewals = grants.map(({ lease, item }, index) => ({
    lease,
    leaseMs: 60_000,
    // Nothing is said of the last one.
    ...(index < 2 ? { ended: done(item.id) } : {}),
  }));
  const renewed = await engine.renew(renewals);
  assert.deepEqual(
    renewed.map(({ ok }) => ok),
    [true, true, true],
  );
  assert.equal(await engine.cancel({ queue: "cars", id: "c" }), "cancelled");
  assert.equal(await engine.cancel({ queue: "vans", id: "g" }), "requested");
  const endings = grants.map(({ lease }) => ({ lease, ending: { type: "done" } }) as const);
  assert.deepEqual(await engine.settle(endings), ["settled", "settled", "settled"]);
  const left = (await engine.queues({})).map(({ queue, waiting, running }) => [queue, waiting, running]);
  assert.deepEqual(left, [
    ["cars", 0, 0],
    ["vans", 0, 0],
  ]);
});

test("the last item of a run ends as the settlement says, also when it is named", async (context) => {
  const { engine } = await open(context, ["a", "b"]);
  const { lease } = await claimRun(engine);
  const settlement = { lease, ended: done("a", "b"), ending: { type: "dead", failure: FAILURE } } as const;
  assert.deepEqual(await engine.settle([settlement]), ["settled"]);
  assert.deepEqual(await statesOf(engine, ["a", "b"]), ["done", "dead"]);
});

test(
  "a lease that is current when its run ends is so until all of it has ended",
  { timeout: 60_000 },
  async (context) => {
    const { engine, watcher } = await open(context, ["a", "b", "c"]);
    const { lease } = await claimRun(engine, 3, 2_000);
    await watcher.query(
      `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(2.5); RETURN NULL; END';
     CREATE TRIGGER slow AFTER DELETE ON baton.item FOR EACH STATEMENT EXECUTE FUNCTION slow()`,
    );
    assert.deepEqual(await engine.settle([{ lease, ended: done("a"), ending: { type: "release" } }]), ["settled"]);
    assert.deepEqual(await statesOf(engine, ["a", "b", "c"]), ["done", "waiting", "waiting"]);
  },
);

test("what replaces nothing because all is covered needs room in the queue", { timeout: 60_000 }, async (context) => {
  const { engine, watcher } = await open(context, ["a", "b"]);
  await claimRun(engine);
  const latest = { ...entry, key: "k", mode: "latest", queueLimit: 1 } as const;
  const codes = async (transaction?: Client): Promise<unknown[]> => {
    const results = await engine.submit([{ ...latest, ...(transaction === undefined ? {} : { transaction }) }]);
    return results.map((result) => (result.ok ? "accepted" : result.error.code));
  };
  assert.deepEqual([await codes(), await codes(watcher)], [["QUEUE_FULL"], ["QUEUE_FULL"]]);
  await engine.submit([{ ...latest, queueLimit: 2 }]);
  assert.deepEqual([await codes(), await codes(watcher)], [["accepted"], ["accepted"]]);
});

test("rows that were rewritten meanwhile are found", { timeout: 60_000 }, async (context) => {
  const { engine, watcher } = await open(context, ["a", "b", "c", "d"]);
  const { lease } = await claimRun(engine, 3);
  assert.equal(await engine.cancel({ queue: "cars", id: "b" }), "requested");
  await watcher.query("VACUUM FULL baton.item");
  assert.deepEqual(await engine.settle([{ lease, ended: done("a", "b"), ending: { type: "done" } }]), ["settled"]);
  assert.deepEqual(await statesOf(engine, ["a", "b", "c", "d"]), ["done", "done", "done", "waiting"]);
});

test("items without an id keep theirs when they change places", { timeout: 60_000 }, async (context) => {
  const stage = await openLossyStage(context, common());
  const { engine } = stage;
  await engine.submit(Array.from({ length: 5 }, () => ({ ...entry, key: "k" })));
  const a = await yieldHead(engine);
  const run = await claimRun(engine, 3);
  const [b = "", c = "", d = ""] = idsOf(run);
  await comeBack(stage, a);
  assert.equal((await engine.renew([{ lease: run.lease, leaseMs: 60_000, ended: done(b) }]))[0]?.ok, true);
  assert.deepEqual(await statesOf(engine, [b, c, d, a]), [undefined, "running", "waiting", "waiting"]);
  await engine.settle([{ lease: run.lease, ending: { type: "done" } }]);
  const next = await claimRun(engine);
  assert.deepEqual(idsOf(next), [d]);
  await engine.settle([{ lease: next.lease, ending: { type: "done" } }]);
  assert.equal(await engine.cancel({ queue: "cars", id: a }), "cancelled");
  assert.equal(idsOf(await claimRun(engine)).length, 1);
});

test("one that comes back later does not come between what a lease covers", { timeout: 60_000 }, async (context) => {
  const stage = await open(context, ["a", "b", "c", "d", "e"]);
  const { engine } = stage;
  await yieldHead(engine);
  // Its place is behind that of the first, which those take that the first run leaves.
  await yieldHead(engine);
  const first = await claimRun(engine);
  assert.deepEqual(idsOf(first), ["c", "d", "e"]);
  await comeBack(stage, "a");
  await engine.settle([{ lease: first.lease, ending: { type: "done" } }]);
  const second = await claimRun(engine);
  const ids = idsOf(second);
  await comeBack(stage, "b");
  const [last = ""] = ids.slice(-1);
  await engine.settle([{ lease: second.lease, ended: done(...ids.slice(0, -1)), ending: { type: "done" } }]);
  assert.deepEqual([ids[0], ...(await statesOf(engine, [last, "a", "b"]))], ["d", "done", "waiting", "waiting"]);
});

test("workers whose connections die all the time keep the order of every key", { timeout: 60_000 }, async (context) => {
  const { url, way, watcher } = await openLossyStage(context, common());
  const KEYS = 20;
  const EACH = 100;
  const begun = new Map<string, number>();
  const early: string[] = [];
  const batons = [await connect(url), await connect(way.url)];
  context.after(() => Promise.all(batons.map((baton) => baton.close())));
  const queues = batons.map((baton) => baton.queue<number>("lines"));
  await queues[0]?.submitMany(
    Array.from({ length: KEYS * EACH }, (_, n) => ({ key: `k${n % KEYS}`, payload: Math.floor(n / KEYS) })),
  );
  const workers = queues.map((queue) =>
    queue.work(
      ({ key, payload }) => {
        const next = begun.get(key) ?? 0;
        if (payload > next) early.push(`${payload} of ${key} began before ${next}`);
        begun.set(key, Math.max(next, payload + 1));
      },
      { concurrency: 16, retry: { attempts: 1_000 } },
    ),
  );
  let kills = 0;
  let round = 0;
  await until(async () => {
    // By turns those with even numbers and those with odd ones: all may have numbers of one kind.
    round += 1;
    const { rowCount } = await watcher.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'baton'
         AND query LIKE '%step%' AND (pid + $1) % 2 = 0`,
      [round],
    );
    kills += rowCount ?? 0;
    return kills > 0 && (await watcher.query("SELECT FROM baton.item")).rows.length === 0;
  }, "all is done");
  await Promise.all(workers.map((worker) => worker.stop()));
  assert.deepEqual(early, []);
  assert.deepEqual(
    [...begun.values()],
    Array.from({ length: KEYS }, () => EACH),
  );
  const report = await queues[0]?.status();
  assert.deepEqual([report?.waiting, report?.running, report?.dead], [0, 0, 0]);
});
