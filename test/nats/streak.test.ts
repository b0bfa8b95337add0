/** A streak whose writes fail: whoever settles hears of it and comes again; nobody else tries on and on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock as clock } from "../../src/domain/clock.ts";
import { LateWrites } from "../../src/engines/nats/late-writes.ts";
import type { KeyStore } from "../../src/engines/nats/key-store.ts";
import { type KeyItem, NOTHING, type Seen, type StateLease } from "../../src/engines/nats/state.ts";
import { Streak } from "../../src/engines/nats/streak.ts";

/** More than are worth a write. */
const AHEAD = 10;
const ENOUGH_WRITES = 100;

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
  const seen: Seen = { sequence: 1, state: { ...NOTHING, kind: "running", items, lease: leaseOf(16) } };
  const streak = new Streak(store, "k", seen, clock.monotonic(), new LateWrites(clock));
  let [running] = items;
  let fence = 16;
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
  };
}
