/** A streak whose writes fail: whoever settles hears of it and comes again; nobody else tries on and on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LateWrites } from "../../src/engines/nats/late-writes.ts";
import type { KeyStore } from "../../src/engines/nats/key-store.ts";
import { LATEST_MS, WORTH_WRITING } from "../../src/engines/nats/run-ahead.ts";
import {
  FENCES_PER_MESSAGE,
  type KeyItem,
  type KeyState,
  NOTHING,
  type Seen,
  type StateLease,
  UNSEEN,
} from "../../src/engines/nats/state.ts";
import { type Running, Streak } from "../../src/engines/nats/streak.ts";
import { ManualClock } from "../manual-clock.ts";

/** More than are worth a write. */
const AHEAD = WORTH_WRITING + 2;
const ENOUGH_WRITES = 100;

/** It stands still: how long the machine takes for a step decides nothing here. */
const clock = new ManualClock();

test("a write that fails is not repeated by itself", async () => {
  let writes = 0;
  const write = (): Promise<never> => {
    writes += 1;
    // Beyond this the test would never end: it would be repeated without a turn for anybody else.
    if (writes > ENOUGH_WRITES) return Promise.withResolvers<never>().promise;
    return Promise.reject(new Error("The connection is closed."));
  };
  const store = { clock, levels: 3, write, read: write } as unknown as KeyStore;
  const items = Array.from({ length: AHEAD + 2 }, (_, index) => itemOf(index));
  const seen: Seen = { sequence: 1, state: { ...NOTHING, kind: "running", items, lease: leaseOf(FENCES_PER_MESSAGE) } };
  const streak = new Streak(store, "k", seen, clock.monotonic(), new LateWrites(clock));
  let [running] = items;
  let fence = FENCES_PER_MESSAGE;
  const settled: Promise<unknown>[] = [];
  while (settled.length < AHEAD && running !== undefined) {
    const next = streak.next(running, fence, clock.wall());
    assert.ok(next !== undefined);
    const after = { item: next.item, lease: leaseOf(next.fence), isGood: () => true, takeAway: () => undefined };
    settled.push(streak.advance(running.unique, fence, after));
    running = next.item;
    fence = next.fence;
  }
  const results = await Promise.allSettled(settled);
  assert.deepEqual(new Set(results.map(({ status }) => status)), new Set(["rejected"]));
  assert.ok(writes <= 2, `${writes} writes`);
  await assert.rejects(streak.again("0"), /closed/);
});

test("the last of a key's items and those before it end by one write; if that fails, all hear of it", async () => {
  const written: KeyState[] = [];
  let answer: () => Promise<Seen | undefined> = () => Promise.reject(new Error("The connection is closed."));
  const write = (_key: string, _seen: Seen, state: KeyState): Promise<Seen | undefined> => {
    written.push(state);
    return answer();
  };
  const store = { clock, levels: 3, write } as unknown as KeyStore;
  const items = [itemOf(0), itemOf(1), itemOf(2)] as const;
  const [first, second, last] = items;
  const seen: Seen = { sequence: 1, state: { ...NOTHING, kind: "running", items, lease: leaseOf(FENCES_PER_MESSAGE) } };
  const streak = new Streak(store, "k", seen, clock.monotonic(), new LateWrites(clock));
  const after = (item: KeyItem): Running => ({
    item,
    lease: leaseOf(FENCES_PER_MESSAGE + 1),
    isGood,
    takeAway: () => undefined,
  });
  const failed = [
    streak.advance(first.unique, FENCES_PER_MESSAGE, after(second)),
    streak.advance(second.unique, FENCES_PER_MESSAGE + 1, after(last)),
  ];
  assert.equal(streak.isLast(second), false, "another one is not done");
  assert.equal(streak.isLast(last), true, "it is known to be the last of its streak");
  const finishing = streak.finish(last, isGood);
  assert.equal(streak.isLast(last), false, "that is being written");
  const results = await Promise.allSettled([finishing, ...failed]);
  assert.deepEqual(new Set(results.map(({ status }) => status)), new Set(["rejected"]));
  answer = () => Promise.resolve({ sequence: 2, state: NOTHING });
  assert.equal(await streak.finish(last, isGood), true);
  assert.deepEqual(await Promise.all([streak.again(first.unique), streak.again(second.unique)]), [
    "settled",
    "settled",
  ]);
  assert.deepEqual(new Set(written), new Set([NOTHING]));
});

test("what ran ahead of an end that somebody else prevented is answered all the same", async () => {
  const seen: Seen = {
    sequence: 1,
    state: { ...NOTHING, kind: "running", items: [itemOf(0), itemOf(1)], lease: leaseOf(FENCES_PER_MESSAGE) },
  };
  const passing = new ManualClock();
  const refused = Promise.withResolvers<undefined>();
  const store = { clock: passing, levels: 3, write: () => refused.promise, read: () => Promise.resolve(UNSEEN) };
  const streak = new Streak(store as unknown as KeyStore, "k", seen, passing.monotonic(), new LateWrites(passing));
  const settled = streak.advance("0", FENCES_PER_MESSAGE, {
    item: itemOf(1),
    lease: leaseOf(FENCES_PER_MESSAGE + 1),
    isGood,
    takeAway: () => undefined,
  });
  const finishing = streak.finish(itemOf(1), isGood);
  // Its turn comes while the end is on its way, and does not come again.
  await passing.pass(LATEST_MS * 2);
  refused.resolve(undefined);
  assert.equal(await finishing, false, "the streak is not finished");
  await passing.pass(LATEST_MS * 2);
  assert.equal(await settled, "lost");
});

test("what is known to be more urgent in the line ends running ahead, and a line that is about to end does not", () => {
  const store = { clock, levels: 3 } as unknown as KeyStore;
  const done = { ...itemOf(0), level: 1 };
  const next = { ...itemOf(1), level: 1 };
  const nextIn = (state: Partial<KeyState>): string | undefined => {
    const running: KeyState = {
      ...NOTHING,
      kind: "running",
      items: [done, next],
      lease: leaseOf(FENCES_PER_MESSAGE),
      ...state,
    };
    const streak = new Streak(store, "k", { sequence: 1, state: running }, clock.monotonic(), new LateWrites(clock));
    return streak.next(done, FENCES_PER_MESSAGE, clock.wall())?.item.unique;
  };
  assert.equal(nextIn({ more: true }), next.unique);
  assert.equal(nextIn({ more: true, line: 1 }), next.unique);
  assert.equal(nextIn({ more: true, line: 0 }), undefined);
  assert.equal(nextIn({ more: "closing" }), next.unique);
  assert.equal(nextIn({ more: "closing", items: [done, { ...next, level: 2 }] }), undefined);
});

test("a turn of quick items is longer, until there were many", () => {
  const store = { clock, levels: 3 } as unknown as KeyStore;
  const streak = new Streak(store, "k", { sequence: 1, state: NOTHING }, 1_000, new LateWrites(clock));
  const longest = (): number => {
    let ms = 0;
    while (streak.lasts(1_000 + ms)) ms += 1;
    return ms;
  };
  assert.equal(longest(), 100);
  for (let items = 0; items < 64; items += 1) streak.goOn({ sequence: 2, state: NOTHING }, 1_000);
  assert.equal(longest(), 50);
});

function isGood(): boolean {
  return true;
}

function itemOf(index: number): KeyItem {
  return {
    unique: String(index),
    id: undefined,
    place: 1,
    level: 0,
    attempts: index === 0 ? 1 : 0,
    submittedAt: 0,
    payload: { type: "text/plain", body: "" },
    headers: undefined,
    keepMs: 0,
    replaceable: false,
    dueAt: undefined,
    tried: undefined,
    losses: 0,
  };
}

function leaseOf(fence: number): StateLease {
  return {
    fence,
    session: "s",
    worker: "w",
    since: 0,
    leaseMs: 30_000,
    nonce: "n",
    progress: undefined,
    cancelRequested: false,
    covered: 1,
    toCancel: [],
  };
}
