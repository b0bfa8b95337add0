import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ManualClock } from "../../../test/manual-clock.ts";
import type { ClaimRequest, Engine, Grant, Submission } from "../../engine/port.ts";
import { MemoryStore } from "./store.ts";

const HOUR_MS = 3_600_000;

describe("the memory store, by a clock that is moved by hand", () => {
  let clock: ManualClock;
  let store: MemoryStore;
  let engine: Engine;

  beforeEach(async () => {
    clock = new ManualClock();
    store = new MemoryStore({ clock });
    engine = store.connect();
    await engine.declare({ queue: "q" });
  });

  test("an idle store sets no timer, and a busy one sets one", async () => {
    await submit("a", { delayMs: 500 });
    await submit("b", { delayMs: 300 });
    assert.equal(clock.timers, 0);
    const over = new AbortController();
    const claims = [claim({ signal: over.signal }), claim({ signal: over.signal }), claim({ signal: over.signal })];
    await submit("c", { delayMs: 100 });
    assert.equal(clock.timers, 1);
    await clock.pass(600);
    assert.deepEqual(keysOf((await Promise.all(claims)).flat()), ["c", "b", "a"]);
    assert.equal(clock.timers, 0);
  });

  test("waiting claims are served first come first served, across handles", async () => {
    const other = store.connect();
    const first = claim({}, other);
    const second = claim({});
    const third = claim({ max: 5 }, other);
    await engine.submit(["a", "b", "c", "d"].map((key) => entry(key)));
    assert.deepEqual(keysOf(await first), ["a"]);
    assert.deepEqual(keysOf(await second), ["b"]);
    assert.deepEqual(keysOf(await third), ["c", "d"]);
  });

  test("a lease ends at its deadline, neither before nor after", async () => {
    await submit("k");
    const [grant] = await claim({ leaseMs: 1_000 });
    assert.ok(grant);
    await clock.pass(999);
    const [renewed] = await engine.renew([{ lease: grant.lease, leaseMs: 1_000 }]);
    assert.equal(renewed?.ok, true, "the lease can be renewed");
    await clock.pass(1_000);
    const [late] = await engine.renew([{ lease: grant.lease, leaseMs: 1_000 }]);
    assert.equal(late?.ok, false, "a lease that ran out cannot be renewed");
    assert.equal((await engine.queues({ queue: "q" }))[0]?.waiting, 1);
  });

  test("stepping the wall clock moves delays but ends no lease", async () => {
    await submit("k");
    await claim({ leaseMs: 10_000 });
    await submit("delayed", { delayMs: HOUR_MS });
    clock.stepWall(HOUR_MS);
    assert.deepEqual(keysOf(await claim({ max: 5 })), ["delayed"]);
  });

  test("a claim that waits learns of a step of the wall clock within a minute", async () => {
    await submit("delayed", { delayMs: HOUR_MS });
    const waiting = claim({});
    clock.stepWall(HOUR_MS);
    await clock.pass(60_000);
    assert.deepEqual(keysOf(await waiting), ["delayed"]);
  });

  test("a released key gets its place back, and a retried one goes to the end", async () => {
    for (const key of ["a", "b", "c"]) await submit(key);
    const [a, b] = await claim({ max: 2 });
    assert.ok(a && b);
    const failure = { message: "no" };
    await engine.settle([{ lease: a.lease, ending: { type: "retry", delayMs: 0, place: "keep", failure } }]);
    await engine.settle([{ lease: b.lease, ending: { type: "release" } }]);
    assert.deepEqual(keysOf(await claim({ max: 5 })), ["b", "c", "a"]);
  });

  test("a replaced head leaves its key in its place", async () => {
    for (const key of ["a", "b"]) await submit(key);
    await submit("a", { mode: "latest" });
    assert.deepEqual(keysOf(await claim({ max: 5 })), ["a", "b"]);
  });

  test("what came due before a submission goes before it", async () => {
    await submit("k", { id: "delayed", delayMs: 100 });
    await clock.pass(100);
    await submit("k", { id: "later" });
    const [grant] = await claim({});
    assert.equal(grant?.item.id, "delayed");
  });

  test("an ended item is remembered as long as it was asked to be", async () => {
    const first = await submit("k", { id: "item", keepMs: 1_000 });
    const [grant] = await claim({});
    assert.ok(grant);
    await engine.settle([{ lease: grant.lease, ending: { type: "done" } }]);
    await clock.pass(999);
    assert.equal((await engine.find({ queue: "q", id: "item" }))?.state, "done");
    await clock.pass(1);
    assert.equal(await engine.find({ queue: "q", id: "item" }), undefined);
    const again = await submit("k", { id: "item", keepMs: 1_000 });
    assert.deepEqual([first, again], [true, true]);
  });

  test("a dead letter is remembered until it is dropped, and then as long as others", async () => {
    await submit("k", { id: "item", keepMs: 1_000 });
    const [grant] = await claim({});
    assert.ok(grant);
    await engine.settle([{ lease: grant.lease, ending: { type: "dead", failure: { message: "no" } } }]);
    await clock.pass(HOUR_MS);
    assert.equal((await engine.find({ queue: "q", id: "item" }))?.state, "dead");
    await engine.revive({ queue: "q", action: "drop" });
    await clock.pass(999);
    assert.equal((await engine.find({ queue: "q", id: "item" }))?.state, "dead");
    await clock.pass(1);
    assert.equal(await engine.find({ queue: "q", id: "item" }), undefined);
  });

  test("an item whose worker vanished after a cancel is cancelled", async () => {
    await submit("k", { id: "item", keepMs: HOUR_MS });
    await claim({ leaseMs: 1_000 });
    assert.equal(await engine.cancel({ queue: "q", id: "item" }), "requested");
    await clock.pass(1_000);
    assert.equal((await engine.find({ queue: "q", id: "item" }))?.state, "cancelled");
  });

  test("a queue that was not declared is refused, entry by entry", async () => {
    const results = await engine.submit([entry("k", { queue: "unknown" }), entry("k")]);
    assert.deepEqual(
      results.map(({ ok }) => ok),
      [false, true],
    );
    await assert.rejects(engine.find({ queue: "unknown", id: "x" }), { code: "QUEUE_MISSING" });
  });

  test("a store says that it is not durable", async () => {
    const [finding] = await engine.check();
    assert.equal(finding?.severity, "warning");
  });

  function entry(key: string, wish: Partial<Submission> = {}): Submission {
    return {
      queue: "q",
      key,
      level: "normal",
      payload: { type: "text/plain", body: key },
      delayMs: 0,
      mode: "fifo",
      keyLimit: 1_000,
      queueLimit: 1_000,
      keepMs: 0,
      ...wish,
    };
  }

  /** Whether it was accepted as a new item. */
  async function submit(key: string, wish: Partial<Submission> = {}): Promise<boolean> {
    const [result] = await engine.submit([entry(key, wish)]);
    return result?.ok === true && !result.accepted.duplicate;
  }

  function claim(wish: Partial<ClaimRequest>, handle: Engine = engine): Promise<readonly Grant[]> {
    const { signal } = new AbortController();
    return handle.claim({ queue: "q", worker: "w", max: 1, leaseMs: 10_000, patienceMs: HOUR_MS, signal, ...wish });
  }
});

function keysOf(grants: readonly Grant[]): string[] {
  return grants.map(({ item }) => item.key);
}
