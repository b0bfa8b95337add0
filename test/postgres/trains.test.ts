/** Items of a key that begin before the store knows that the ones before them are done, and all that may come between. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import type { Engine, Grant, SettleResult } from "../../src/engine/port.ts";
import { Child } from "../sqlite/desk.ts";
import { started } from "../started.ts";
import { until } from "../kit/until.ts";
import { type LossyStage, openLossyStage } from "./lossy-stage.ts";
import { becomeQuick, type Begun, claim, goOn, items, next, type Plan, runAhead, SLOW_REPORTS } from "./run-ahead.ts";

const WITHIN_MS = 20_000;
/** Begun, and in all. */
const AHEAD = 4;
const ITEMS = 10;
const MOST = 12;
/** A report takes so long; long enough for anybody to do something meanwhile. */
const REPORT_S = 0.15;
/** For so long an item may begin that the store does not know of, and a little longer. */
const AHEAD_MS = 60;
const SOON_MS = 100;
const CHILD = join(import.meta.dirname, "children/ahead.ts");

const common = started(() => startPostgres());

const open = (context: TestContext): Promise<LossyStage> => openLossyStage(context, common());

/** Some items are begun, and the store knows of the first at most. */
async function begin(stage: LossyStage, plan: Partial<Plan> = {}): Promise<Begun> {
  await becomeQuick(stage.engine);
  await stage.watcher.query(SLOW_REPORTS(REPORT_S));
  return await runAhead(stage.engine, { count: AHEAD, submissions: (key) => items(key, ITEMS), ...plan });
}

const numberOf = ({ item }: Grant): number => Number(item.payload.body);
const numbersOf = (grants: readonly Grant[]): readonly number[] => grants.map(numberOf);

async function done(engine: Engine, grants: readonly Grant[]): Promise<readonly SettleResult[]> {
  return await engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } })));
}

/** Whatever is left, one after the other. Returns what ran. */
async function workOff(engine: Engine, key: string, count: number): Promise<readonly Grant[]> {
  const ran: Grant[] = [];
  while (ran.length < count) {
    const grants = await next(engine, WITHIN_MS);
    assert.ok(grants.length > 0, `after ${ran.length} items nothing came any more`);
    assert.deepEqual(
      await done(engine, grants),
      grants.map(() => "settled"),
    );
    ran.push(...grants.filter(({ item }) => item.key === key));
  }
  return ran;
}

function assertRising(grants: readonly Grant[]): void {
  const fences = grants.map(({ lease }) => lease.fence);
  assert.deepEqual(
    fences,
    fences.toSorted((a, b) => a - b),
  );
  assert.equal(new Set(fences).size, fences.length);
}

/** The counts of the queue are those of its tables. What was handed out ahead, to a worker that was quick, goes back by itself. */
async function assertCounted(
  { watcher, other }: LossyStage,
  key: string,
  waiting: number,
  running: number,
): Promise<void> {
  if (running === 0)
    await until(async () => {
      const { rows } = await watcher.query("SELECT FROM baton.key WHERE state = 2");
      return rows.length === 0;
    }, "that nothing is handed out ahead");
  const { rows } = await watcher.query<{ items: number; waiting: number; lanes: number }>(
    `SELECT (SELECT count(*)::integer FROM baton.item i WHERE i.key = k.id) AS items, k.waiting,
       (SELECT sum(l)::integer FROM unnest(k.lane) l) AS lanes FROM baton.key k WHERE name = $1`,
    [key],
  );
  const none = { items: 0, waiting: 0, lanes: 0 };
  assert.deepEqual(rows[0] ?? none, { items: waiting + running, waiting, lanes: waiting });
  const { rows: all } = await watcher.query<{ waiting: number; running: number }>(
    `SELECT (SELECT count(*)::integer FROM baton.item) - (SELECT count(*)::integer FROM baton.key WHERE state = 2 AND NOT held) AS waiting,
       (SELECT count(*)::integer FROM baton.key WHERE state = 2 AND NOT held) AS running`,
  );
  const [report] = await other.queues({ queue: "cars" });
  assert.ok(report !== undefined);
  assert.equal(
    report.waiting,
    report.levels.reduce((sum, level) => sum + level.waiting, 0),
  );
  assert.deepEqual({ waiting: report.waiting, running: report.running }, all[0]);
}

test("every item runs once, in its place, under a fence of its own", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine } = stage;
  const KEYS = 8;
  const EACH = 100;
  await becomeQuick(engine);
  for (let key = 0; key < KEYS; key += 1) await engine.submit(items(`k${key}`, EACH));
  const ran = new Map<string, Grant[]>();
  const unsettled = new Set<string>();
  let ahead = 0;
  let left = KEYS * EACH;
  const settled: Promise<void>[] = [];
  while (left > 0) {
    for (const grant of await next(engine, WITHIN_MS)) {
      const { key } = grant.item;
      ran.set(key, [...(ran.get(key) ?? []), grant]);
      left -= 1;
      if (unsettled.has(key)) ahead += 1;
      unsettled.add(key);
      settled.push(
        done(engine, [grant]).then((results) => {
          assert.deepEqual(results, ["settled"]);
          if (ran.get(key)?.at(-1) === grant) unsettled.delete(key);
        }),
      );
    }
  }
  await Promise.all(settled);
  for (const [key, grants] of ran) {
    assert.deepEqual(
      numbersOf(grants),
      Array.from({ length: EACH }, (_, n) => n),
    );
    assertRising(grants);
    await assertCounted(stage, key, 0, 0);
  }
  assert.ok(ahead > 0, "nothing began before the store knew that the one before was done");
});

test("no more than twelve begin ahead", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { grants } = await begin(stage, { count: 1 + MOST, submissions: (key) => items(key, 2 * MOST) });
  assert.deepEqual((await goOn(stage.engine, grants)).more, undefined);
});

for (const [what, change] of [
  ["has an id", (id: string) => ({ id })],
  ["is remembered", () => ({ keepMs: 60_000 })],
] as const) {
  test(`an item that ${what} begins when the store knows of it`, { timeout: 60_000 }, async (context) => {
    const stage = await open(context);
    const submissions = (key: string) => items(key, 5, change(key), 2);
    const { key, grants } = await begin(stage, { count: 2, submissions });
    const { settling, more, late } = await goOn(stage.engine, grants);
    assert.equal(more, undefined);
    await settling;
    const ran = late === undefined ? [] : [late];
    await done(stage.engine, ran);
    assert.deepEqual(numbersOf([...ran, ...(await workOff(stage.engine, key, 3 - ran.length))]), [2, 3, 4]);
  });
}

test("a connection that is killed loses nothing that was begun", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, watcher } = stage;
  const { key, grants, settled } = await begin(stage);
  await killReports(watcher);
  await watcher.query(SLOW_REPORTS(0));
  const results = await Promise.allSettled(settled);
  assert.ok(results.some(({ status }) => status === "rejected"));
  // Whoever heard nothing comes again.
  assert.deepEqual(
    await done(engine, grants),
    grants.map(() => "settled"),
  );
  await assertCounted(stage, key, ITEMS - AHEAD, 0);
  const rest = await workOff(engine, key, ITEMS - AHEAD);
  assert.deepEqual(
    numbersOf(rest),
    Array.from({ length: ITEMS - AHEAD }, (_, n) => n + AHEAD),
  );
  assertRising([...grants, ...rest]);
  await assertCounted(stage, key, 0, 0);
});

test("a report whose reply is lost is told again, and counts once", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, way, watcher } = stage;
  let lost: Promise<void> | undefined;
  const { key, grants, settled } = await begin(stage, {
    begun: () => {
      lost = way.lose({ word: "baton_step" });
    },
  });
  await lost;
  const results = await Promise.allSettled(settled);
  assert.ok(results.every(({ status }) => status === "rejected"));
  await watcher.query(SLOW_REPORTS(0));
  const { rows } = await watcher.query("SELECT FROM baton.key WHERE name = $1 AND fence = $2", [
    key,
    grants[0]?.lease.fence,
  ]);
  assert.equal(rows.length, 0, "the store was told, and it is the reply that was lost");
  const running = grants.at(-1);
  assert.ok(running !== undefined);
  const [renewed] = await engine.renew([{ lease: running.lease, leaseMs: 60_000 }]);
  assert.equal(renewed?.ok, true, "it is not known whether the lease has its old fence, and that is no loss");
  assert.deepEqual(
    await done(engine, grants),
    grants.map(() => "settled"),
  );
  await assertCounted(stage, key, ITEMS - AHEAD, 0);
  assert.equal(numberOf((await workOff(engine, key, ITEMS - AHEAD))[0] ?? running), AHEAD);
  await assertCounted(stage, key, 0, 0);
});

test("a process that is killed repeats what it had not told, in order", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { url, other, watcher } = stage;
  const LEASE_MS = 2_000;
  const child = new Child(fork(CHILD, [url, AHEAD, ITEMS, LEASE_MS].map(String)));
  context.after(() => child.kill());
  assert.equal(await child.next(), "quick");
  await watcher.query(SLOW_REPORTS(1));
  child.send("go");
  const { key, fences } = await child.next<{ key: string; fences: readonly number[] }>();
  await child.kill();
  // The server does not know yet that its client is gone, and would go on.
  await killReports(watcher);
  await watcher.query(SLOW_REPORTS(0));
  await assertCounted(stage, key, ITEMS - 1, 1);
  const ran = await workOff(other, key, ITEMS);
  assert.deepEqual(
    numbersOf(ran),
    Array.from({ length: ITEMS }, (_, n) => n),
  );
  assert.deepEqual(
    ran.map(({ item }) => item.attempt),
    Array.from({ length: ITEMS }, (_, n) => (n === 0 ? 2 : 1)),
    "the one that the store knew of was tried before",
  );
  assertRising(ran);
  assert.ok(ran.every(({ lease }) => fences.every((fence) => fence < lease.fence)));
  await assertCounted(stage, key, 0, 0);
});

test("a stale holder changes nothing", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other, watcher } = stage;
  const request = { leaseMs: 1_000 };
  await becomeQuick(engine, request);
  await watcher.query(SLOW_REPORTS(REPORT_S));
  const submissions = (key: string) => items(key, ITEMS);
  const { key, grants, settled } = await runAhead(engine, { count: AHEAD, submissions, request });
  await killReports(watcher);
  await Promise.allSettled(settled);
  await watcher.query(SLOW_REPORTS(0));
  const taken = await next(other, WITHIN_MS);
  assert.deepEqual(
    taken.map(({ item }) => [item.key, item.payload.body, item.attempt]),
    [[key, "0", 2]],
  );
  assertRising([...grants, ...taken]);
  assert.deepEqual(
    await done(engine, grants),
    grants.map(() => "lost"),
  );
  await assertCounted(stage, key, ITEMS - 1, 1);
  assert.deepEqual(await done(other, taken), ["settled"]);
  const ran = await workOff(other, key, ITEMS - 1);
  assert.equal(numberOf(ran[0] ?? never()), 1);
  await assertCounted(stage, key, 0, 0);
});

for (const isOwn of [true, false]) {
  const whose = isOwn ? "its own" : "another";
  test(`what ${whose} process cancels has not begun, and never does`, { timeout: 60_000 }, async (context) => {
    const stage = await open(context);
    const { engine, watcher } = stage;
    const begun = await begin(stage);
    const { key, grants } = begun;
    const canceller = isOwn ? engine : stage.other;
    const running = grants.at(-1) ?? never();
    const ids = await idsOf(watcher, key);
    const waiting = ids.find(({ number }) => number === ITEMS - 1) ?? never();
    assert.equal(await canceller.cancel({ queue: "cars", id: running.item.id }), "requested");
    assert.equal(await canceller.cancel({ queue: "cars", id: waiting.id }), "cancelled");
    await watcher.query(SLOW_REPORTS(0));
    const [renewed] = await engine.renew([{ lease: running.lease, leaseMs: 60_000 }]);
    assert.ok(renewed?.ok === true && renewed.cancelRequested);
    assert.deepEqual(await done(engine, [running]), ["settled"]);
    const rest = await workOff(engine, key, ITEMS - AHEAD - 1);
    assert.deepEqual(
      numbersOf(rest),
      Array.from({ length: ITEMS - AHEAD - 1 }, (_, n) => n + AHEAD),
    );
    await assertCounted(stage, key, 0, 0);
  });

  test(`what ${whose} process replaces has not begun, and never does`, { timeout: 60_000 }, async (context) => {
    const stage = await open(context);
    const { engine, watcher } = stage;
    const { key, grants } = await begin(stage);
    const replacer = isOwn ? engine : stage.other;
    const [result] = await replacer.submit(items(key, 1, { mode: "latest" }));
    assert.ok(result?.ok === true);
    const { replaced } = result.accepted;
    assert.equal(replaced.length, ITEMS - AHEAD);
    for (const { item } of grants) assert.ok(!replaced.includes(item.id));
    await watcher.query(SLOW_REPORTS(0));
    assert.deepEqual(await done(engine, grants.slice(-1)), ["settled"]);
    assert.deepEqual(numbersOf(await workOff(engine, key, 1)), [0]);
    await assertCounted(stage, key, 0, 0);
  });
}

test("a key that another process has paused begins nothing more", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other, watcher } = stage;
  const { key, grants } = await begin(stage, { count: 1 });
  await other.pause({ queue: "cars", key, paused: true });
  const { settling, more, late } = await goOn(engine, grants);
  assert.equal(more ?? late, undefined);
  await settling;
  await watcher.query(SLOW_REPORTS(0));
  assert.deepEqual(await next(engine, SOON_MS), []);
  await assertCounted(stage, key, ITEMS - 1, 0);
  await other.pause({ queue: "cars", key, paused: false });
  assert.equal(numberOf((await workOff(engine, key, ITEMS - 1))[0] ?? never()), 1);
});

for (const isOwn of [true, false]) {
  test(`a queue that ${isOwn ? "its own" : "another"} process has paused begins nothing more`, async (context) => {
    const stage = await open(context);
    const { engine, other } = stage;
    const { grants } = await begin(stage);
    await (isOwn ? engine : other).pause({ queue: "cars", paused: true });
    const { more, late } = await goOn(engine, grants);
    assert.equal(more ?? late, undefined);
    await other.pause({ queue: "cars", paused: false });
  });
}

test("something urgent is begun before what else the key has", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other, watcher } = stage;
  const { key, grants } = await begin(stage, { count: 1 });
  await watcher.query(SLOW_REPORTS(0));
  await other.submit(items(key, 1, { level: "high" }));
  await wait(AHEAD_MS);
  const { settling, more, late = more } = await goOn(engine, grants);
  await settling;
  const [first] = late === undefined ? await next(engine, WITHIN_MS) : [late];
  assert.equal(first?.item.level, "high");
});

test(
  "a report is answered that something urgent has come, or that the key is lost",
  { timeout: 60_000 },
  async (context) => {
    const { engine, other, watcher } = await open(context);
    await engine.submit(items("k", 3));
    const [first] = await next(engine, WITHIN_MS, { max: 1 });
    const report = async (was = 0): Promise<unknown> => {
      await watcher.query("BEGIN");
      const { rows } = await watcher.query(
        `SELECT a.halted, a.lost FROM baton.key k JOIN baton.item f ON f.key = k.id AND f.ord = k.ord
         JOIN baton.item n ON n.key = k.id AND n.body = '1'
         CROSS JOIN LATERAL baton.advance(ARRAY[k.id], ARRAY[k.fence - $1::bigint], ARRAY[k.fence + 1], ARRAY[n.ord], ARRAY[n.ctid], ARRAY[1],
           ARRAY[k.id], ARRAY[f.ord], ARRAY[f.ctid]) a`,
        [was],
      );
      await watcher.query("ROLLBACK");
      return rows[0];
    };
    const key = [String(first?.lease.handle)];
    assert.deepEqual(await report(), { halted: null, lost: null });
    assert.deepEqual(await report(1), { halted: [], lost: key }, "under another fence");
    await other.submit(items("k", 1, { level: "high" }));
    assert.deepEqual(await report(), { halted: key, lost: null });
  },
);

test("whoever waits to hold a key gets it while it has items", { timeout: 60_000 }, async (context) => {
  const { engine, other, watcher } = await open(context);
  const MANY = 900;
  await becomeQuick(engine);
  await engine.submit(items("k", MANY));
  let ran = 0;
  const hold = { queue: "cars", key: "k", worker: "h", leaseMs: 60_000, signal: AbortSignal.timeout(WITHIN_MS) };
  const fences: number[] = [];
  const working = new AbortController();
  const work = async (): Promise<void> => {
    while (!working.signal.aborted && ran < MANY) {
      const grants = await engine.claim({ ...claim, signal: working.signal });
      ran += grants.length;
      for (const { lease } of grants) fences.push(lease.fence);
      void done(engine, grants);
    }
  };
  const worked = work();
  await until(() => ran > 0, "it works");
  const lease = await other.hold(hold);
  working.abort();
  await worked;
  assert.ok(lease !== undefined && ran < MANY, `${ran} of ${MANY} items came first`);
  assert.ok(fences.every((fence) => fence < lease.fence));
  const { rowCount } = await watcher.query("SELECT FROM baton.item");
  assert.equal(rowCount, MANY - ran);
});

test("an item in the middle that is tried again, dies or is let go keeps its place", async (context) => {
  const stage = await open(context);
  const { engine, watcher } = stage;
  const failure = { name: "Error", message: "no" };
  for (const [ending, again, attempt] of [
    [{ type: "release" }, AHEAD - 1, 1],
    [{ type: "retry", place: "keep", delayMs: 0, failure }, AHEAD - 1, 2],
    [{ type: "dead", failure }, AHEAD, 1],
  ] as const) {
    await watcher.query(SLOW_REPORTS(0));
    const { key, grants, settled } = await begin(stage);
    const { lease } = grants.at(-1) ?? never();
    assert.deepEqual(await engine.settle([{ lease, ending }]), ["settled"]);
    await Promise.all(settled);
    await watcher.query(SLOW_REPORTS(0));
    await assertCounted(stage, key, ITEMS - again, 0);
    const rest = await workOff(engine, key, ITEMS - again);
    assert.deepEqual(
      numbersOf(rest),
      Array.from({ length: ITEMS - again }, (_, n) => n + again),
    );
    assert.equal(rest[0]?.item.attempt, attempt);
    await assertCounted(stage, key, 0, 0);
  }
});

test("two that are quick, and connections that die all the time", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, other, watcher } = stage;
  const KEYS = 20;
  const EACH = 150;
  for (const one of [engine, other]) await becomeQuick(one);
  const ran = new Map<string, Grant[]>();
  const ended = new Set<string>();
  let left = KEYS * EACH;
  const over = new AbortController();
  const finish = async (one: Engine, grant: Grant): Promise<void> => {
    for (;;) {
      try {
        await done(one, [grant]);
        break;
      } catch (error) {
        assert.ok(error instanceof Error && "code" in error && error.code === "OUTCOME_UNKNOWN", String(error));
      }
    }
    const { key } = grant.item;
    if (!key.startsWith("k") || ended.has(`${key} ${numberOf(grant)}`)) return;
    ended.add(`${key} ${numberOf(grant)}`);
    left -= 1;
    if (left === 0) over.abort();
  };
  const work = async (one: Engine): Promise<void> => {
    const finishing: Promise<void>[] = [];
    while (!over.signal.aborted) {
      const grants = await one.claim({ ...claim, signal: over.signal }).catch(() => []);
      for (const grant of grants) {
        ran.set(grant.item.key, [...(ran.get(grant.item.key) ?? []), grant]);
        finishing.push(finish(one, grant));
      }
    }
    await Promise.all(finishing);
  };
  for (let key = 0; key < KEYS; key += 1) await engine.submit(items(`k${key}`, EACH));
  const workers = [engine, other].map(work);
  let kills = 0;
  for (let turn = 0; !over.signal.aborted; turn += 1) {
    const { rowCount } = await watcher.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'baton'
         AND query LIKE '%step%' AND (pid + $1) % 2 = 0`,
      [turn],
    );
    kills += rowCount ?? 0;
    await wait(5 * (1 + (turn % 7)));
  }
  await Promise.all(workers);
  assert.ok(kills > 0);
  for (const [key, grants] of ran) {
    const sorted = grants.toSorted((a, b) => a.lease.fence - b.lease.fence);
    assertRising(sorted);
    let most = -1;
    for (const grant of sorted) {
      assert.ok(numberOf(grant) <= most + 1, `${numberOf(grant)} of ${key} began before ${most + 1}`);
      most = Math.max(most, numberOf(grant));
    }
    await assertCounted(stage, key, 0, 0);
  }
});

test("a close tells the store everything that was done", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine } = stage;
  const { key, grants, settled } = await begin(stage);
  const last = engine.settle(grants.slice(-1).map(({ lease }) => ({ lease, ending: { type: "done" } })));
  await engine.close();
  assert.deepEqual(await last, ["settled"]);
  assert.deepEqual(
    await Promise.all(settled),
    settled.map(() => ["settled"]),
  );
  await assertCounted(stage, key, ITEMS - AHEAD, 0);
});

/** Nothing of what was being told is known. */
async function killReports(watcher: Client): Promise<void> {
  await until(async () => {
    const { rowCount } = await watcher.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()",
    );
    return (rowCount ?? 0) > 0;
  }, "a report is under way");
}

/** The ids that the items of a key were given, and where they stand among them. */
async function idsOf(
  watcher: Client,
  key: string,
): Promise<readonly { readonly id: string; readonly number: number }[]> {
  const { rows } = await watcher.query<{ id: string; body: string }>(
    `SELECT baton.given_id(i.key, i.level, i.ord) AS id, i.body FROM baton.item i JOIN baton.key k ON k.id = i.key WHERE k.name = $1 ORDER BY i.ord`,
    [key],
  );
  return rows.map(({ id, body }) => ({ id, number: Number(body) }));
}

function never(): never {
  throw new Error("This is not there.");
}
