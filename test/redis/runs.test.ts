/** Runs of several items where this store has windows of its own: replies that are lost, lines with gaps, processes of the version before. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { EndedItem, Engine, Grant, Settlement } from "../../src/engine/port.ts";
import { openRedisUrl } from "../../src/engines/redis/index.ts";
import { claim, entry } from "../cars.ts";
import { until } from "../kit/until.ts";
import { LossyWay } from "../lossy-way.ts";
import { RedisDesk } from "./desk.ts";

const SOON_MS = 20_000;
const BRIEF_MS = 200;
/** Long enough for the next claim, also on a busy machine. */
const AWAY_MS = 1_500;
const DONE = { type: "done" } as const;
/** What the version before writes into the record of a key that is leased. */
const FIELDS_BEFORE_RUNS = 27;
const CUT = `
  local record = redis.call('HGET', KEYS[1], ARGV[1])
  local fields = { cmsgpack.unpack(record) }
  redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(unpack(fields, 1, tonumber(ARGV[2]))))
  return #fields`;

interface Stage {
  readonly desk: RedisDesk;
  readonly way: LossyWay;
  readonly engine: Engine;
}

async function stage(context: TestContext): Promise<Stage> {
  const desk = await RedisDesk.withServer(context);
  const way = await LossyWay.to(desk.url);
  context.after(() => way.close());
  const engine = await openRedisUrl(way.url);
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  return { desk, way, engine };
}

async function line(engine: Engine, ids: readonly string[], body = "x"): Promise<void> {
  const payload = { type: "text/plain", body };
  const common = { ...entry, key: "k", payload, keepMs: 60_000, keyLimit: 100, queueLimit: 100 };
  await engine.submit(ids.map((id) => ({ ...common, id })));
}

async function run(engine: Engine, items: number, leaseMs = claim.leaseMs): Promise<Grant> {
  const [grant] = await engine.claim({ ...claim, leaseMs, items, signal: AbortSignal.timeout(SOON_MS) });
  assert.ok(grant !== undefined);
  return grant;
}

function allOf({ item, behind = [] }: Grant): readonly [string, number][] {
  return [item, ...behind].map(({ id, attempt }) => [id, attempt]);
}

/** As `allOf` tells of items that were never tried. */
function firstTime(...ids: string[]): readonly [string, number][] {
  return ids.map((id) => [id, 1]);
}

function done(...ids: string[]): EndedItem[] {
  return ids.map((id) => ({ id, ending: DONE }));
}

async function settle(engine: Engine, settlement: Settlement): Promise<void> {
  assert.deepEqual(await engine.settle([settlement]), ["settled"]);
}

async function states(engine: Engine, ids: readonly string[]): Promise<unknown[]> {
  const reports = await Promise.all(ids.map((id) => engine.find({ queue: "cars", id })));
  return reports.map((report) => [report?.state, report?.attempt]);
}

async function calls(desk: RedisDesk): Promise<Map<string, number>> {
  const stats = String(await desk.command("INFO", "commandstats"));
  return new Map(
    [...stats.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name = "", count]) => [name, Number(count)]),
  );
}

describe("replies about a run that are lost", { concurrency: 3, timeout: 60_000 }, () => {
  test("a run that nobody heard of is given anew, and nothing is counted", async (context) => {
    const { way, engine } = await stage(context);
    await line(engine, ["a", "b", "c"]);
    const lost = way.lose({ word: "claim", atOnce: true });
    const grant = await run(engine, 3);
    await lost;
    assert.deepEqual(allOf(grant), firstTime("a", "b", "c"));
    assert.equal(grant.item.losses, undefined);
  });

  test("a settlement ended all that it named, and its repetition changes nothing", async (context) => {
    const { way, engine } = await stage(context);
    await line(engine, ["a", "b", "c", "d"]);
    const { lease } = await run(engine, 4);
    const settlement = { lease, ended: done("a", "b"), ending: DONE };
    const lost = way.lose({ word: "settle", atOnce: true });
    await assert.rejects(engine.settle([settlement]), { code: "OUTCOME_UNKNOWN" });
    await lost;
    assert.deepEqual(await engine.settle([settlement]), ["lost"]);
    const after = [
      ["done", 1],
      ["done", 1],
      ["done", 1],
      ["waiting", 0],
    ];
    assert.deepEqual(await states(engine, ["a", "b", "c", "d"]), after);
  });

  test("a renewal can be repeated", async (context) => {
    const { way, engine } = await stage(context);
    await line(engine, ["a", "b", "c"]);
    const { lease } = await run(engine, 3);
    const renewal = { lease, leaseMs: claim.leaseMs, ended: done("a") };
    const lost = way.lose({ word: "renew", atOnce: true });
    await assert.rejects(engine.renew([renewal]), { code: "OUTCOME_UNKNOWN" });
    await lost;
    assert.equal((await engine.renew([renewal]))[0]?.ok, true);
    const during = [
      ["done", 1],
      ["running", 1],
      ["waiting", 0],
    ];
    assert.deepEqual(await states(engine, ["a", "b", "c"]), during);
    await settle(engine, { lease, ended: done("a"), ending: DONE });
    assert.deepEqual(allOf(await run(engine, 3)), firstTime("c"));
  });
});

describe("runs", { concurrency: 3, timeout: 60_000 }, () => {
  test("what was cancelled in line is no part of a run, and nothing covered is overtaken across it", async (context) => {
    const { engine } = await stage(context);
    await line(engine, ["y", "a", "b", "c", "d", "e", "f"]);
    const yielded = await run(engine, 1);
    for (const id of ["b", "c", "e"]) assert.equal(await engine.cancel({ queue: "cars", id }), "cancelled");
    const ending = { type: "retry", delayMs: AWAY_MS, place: "yield", failure: { message: "again" } } as const;
    await settle(engine, { lease: yielded.lease, ending });
    const grant = await run(engine, 2);
    const { lease } = grant;
    assert.deepEqual(allOf(grant), firstTime("a", "d"));
    await until(
      async () => (await engine.find({ queue: "cars", id: "y" }))?.state === "waiting",
      "the item that yielded",
    );
    await settle(engine, { lease, ended: done("a"), ending: { type: "release" } });
    const order: unknown[] = [];
    for (let count = 0; count < 3; count += 1) {
      // The one that yielded was tried: no run takes it along.
      const next = await run(engine, 5);
      order.push(allOf(next));
      await settle(engine, { lease: next.lease, ending: DONE });
    }
    assert.deepEqual(order, [firstTime("d"), [["y", 2]], firstTime("f")]);
  });

  const cancels: readonly (readonly [Settlement["ending"], string, number])[] = [
    [{ type: "release" }, "cancelled", 0],
    [{ type: "retry", delayMs: 0, place: "keep", failure: { message: "again" } }, "cancelled", 1],
    [DONE, "done", 1],
  ];
  for (const [ending, state, attempt] of cancels) {
    test(`an item that was to be cancelled is ${state} when its run ends with it as ${ending.type}`, async (context) => {
      const { engine } = await stage(context);
      await line(engine, ["a", "b", "c"]);
      const { lease } = await run(engine, 3);
      assert.equal(await engine.cancel({ queue: "cars", id: "b" }), "requested");
      await settle(engine, { lease, ended: done("a"), ending });
      assert.deepEqual(await states(engine, ["b"]), [[state, attempt]]);
      assert.deepEqual(allOf(await run(engine, 3)), firstTime("c"));
    });
  }

  test("an item that was to be cancelled, and runs by now, hears of it and goes on", async (context) => {
    const { engine } = await stage(context);
    await line(engine, ["a", "b"]);
    const { lease } = await run(engine, 2);
    assert.equal(await engine.cancel({ queue: "cars", id: "b" }), "requested");
    const [renewed] = await engine.renew([{ lease, leaseMs: claim.leaseMs, ended: done("a") }]);
    assert.ok(renewed?.ok === true && renewed.cancelRequested);
    assert.deepEqual(await states(engine, ["b"]), [["running", 1]]);
    await settle(engine, { lease, ending: DONE });
    assert.deepEqual(await states(engine, ["b"]), [["done", 1]]);
  });

  test("a key lets others pass after a run in which something ended", async (context) => {
    const { engine } = await stage(context);
    await line(engine, ["a", "b", "c"]);
    const first = await run(engine, 3);
    await engine.submit([{ ...entry, key: "other", id: "o" }]);
    await settle(engine, { lease: first.lease, ending: { type: "release" } });
    const again = await run(engine, 3);
    assert.deepEqual(allOf(again), firstTime("a", "b", "c"));
    await settle(engine, { lease: again.lease, ended: done("a"), ending: { type: "release" } });
    assert.deepEqual(allOf(await run(engine, 3)), firstTime("o"));
  });

  test("what would replace nothing, because a lease covers all, counts for the limit of the queue", async (context) => {
    const { engine } = await stage(context);
    await line(engine, ["a", "b"]);
    await run(engine, 2);
    const newest = { ...entry, key: "k", mode: "latest", queueLimit: 1 } as const;
    const [refused] = await engine.submit([newest]);
    assert.equal(refused?.ok === false && refused.error.code, "QUEUE_FULL");
  });

  test("a key that had nothing left begins anew, also in the call that finds its lease lost", async (context) => {
    const { engine } = await stage(context);
    await line(engine, ["a"]);
    await run(engine, 1, BRIEF_MS);
    assert.equal(await engine.cancel({ queue: "cars", id: "a" }), "requested");
    await wait(2 * BRIEF_MS);
    await line(engine, ["b", "c"]);
    assert.deepEqual(await states(engine, ["a"]), [["cancelled", 1]]);
    assert.deepEqual(allOf(await run(engine, 2)), firstTime("b", "c"));
  });

  test("a reply holds no more than a million bytes of what stands behind others", async (context) => {
    const { engine } = await stage(context);
    const ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    await line(engine, ids, "x".repeat(250_000));
    const { lease, behind } = await run(engine, 8);
    assert.deepEqual(
      behind?.map(({ id }) => id),
      ["b", "c", "d", "e"],
    );
    await settle(engine, { lease, ended: done("a", "b", "c", "d"), ending: DONE });
    assert.equal((await run(engine, 8)).item.id, "f");
  });

  test("a run is read with one command, and ended with one of each kind", async (context) => {
    const { desk, engine } = await stage(context);
    const common = { ...entry, key: "k", keyLimit: 100, queueLimit: 100 };
    await engine.submit(Array.from({ length: 32 }, () => common));
    const before = await calls(desk);
    const { lease, item, behind = [] } = await run(engine, 32);
    const ended = done(item.id, ...behind.slice(0, -1).map(({ id }) => id));
    await settle(engine, { lease, ended, ending: DONE });
    const after = await calls(desk);
    const made = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    assert.equal(ended.length, 31);
    // The state of the queue and the key, twice; its head, what is behind.
    assert.ok(made("hmget") <= 6, `${made("hmget")} reads of many`);
    // Of items, links and the key; and the one that calls begin with.
    assert.ok(made("hdel") <= 5, `${made("hdel")} removals`);
    assert.ok(made("hset") <= 4, `${made("hset")} writes`);
  });

  test("a lease that the version before wrote, or wrote over, covers one item", async (context) => {
    const { desk, engine } = await stage(context);
    await line(engine, ["a", "b", "c"]);
    const { lease } = await run(engine, 3);
    const cut = ["EVAL", CUT, "1", "{baton:cars}:keys", "k", String(FIELDS_BEFORE_RUNS)];
    assert.ok(Number(await desk.command(...cut)) > FIELDS_BEFORE_RUNS);
    assert.equal(await engine.cancel({ queue: "cars", id: "c" }), "cancelled");
    await settle(engine, { lease, ended: done("a"), ending: DONE });
    const after = [
      ["done", 1],
      ["waiting", 0],
    ];
    assert.deepEqual(await states(engine, ["a", "b"]), after);
    assert.deepEqual(allOf(await run(engine, 3)), firstTime("b"));
  });
});
