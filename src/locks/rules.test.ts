import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  ahead,
  bury,
  concerned,
  forgetData,
  holderOf,
  join,
  keepMs,
  leave,
  type LockRecord,
  type Moment,
  MOST_WAITERS,
  refusal,
  type Waiter,
  withFences,
} from "./rules.ts";

describe("how a lock changes", () => {
  test("the first to come holds it, those who follow wait in line", () => {
    const record = joined("a", "b", "c");
    assert.deepEqual(nonces(record), { holders: ["a"], waiters: ["b", "c"] });
    assert.equal(join(record, waiter("b"), 1, at(0)), record, "one who has a place has nothing to write");
  });

  test("a hold has the version of the write that granted it", () => {
    const record = withFences(join(undefined, waiter("a"), 1, at(0)), 7);
    assert.equal(holderOf(record, "a")?.fence, 7);
    assert.equal(withFences(record, 9), record);
    const next = leave(joined("a", "b"), "a", at(0));
    assert.ok(next !== undefined);
    assert.equal(holderOf(withFences(next, 9), "b")?.fence, 9);
  });

  test("a write grants one hold at most", () => {
    const two = withFences(join(withFences(join(undefined, waiter("a"), 2, at(0)), 1), waiter("b"), 2, at(0)), 2);
    const crowd = ["c", "d"].reduce((record, nonce) => join(record, waiter(nonce), 2, at(0)), two);
    const buried = bury(crowd, new Set(["session a", "session b"]), at(0));
    assert.deepEqual(nonces(buried), { holders: ["c"], waiters: ["d"] });
    assert.deepEqual(nonces(join(buried, waiter("e"), 2, at(0))), { holders: ["c"], waiters: ["d", "e"] });
  });

  test("the last to leave leaves nothing", () => {
    assert.equal(leave(joined("a"), "a", at(0)), undefined);
    const record = joined("a");
    assert.equal(leave(record, "x", at(0)), record, "a stranger changes nothing");
    assert.equal(leave(undefined, "a", at(0)), undefined);
  });

  test("a holder that vanished leaves its delay and its data, a waiter neither", () => {
    const record = join(undefined, { ...waiter("a"), delayMs: 500, data: "half done" }, 1, at(0));
    const buried = bury(record, new Set(["session a"]), at(1_000));
    assert.deepEqual(buried?.delays, [{ until: 1_500, ms: 500 }]);
    assert.equal(buried.lastData, "half done");
    assert.equal(keepMs(buried), 500, "nobody takes part: the store may remove it when the delay is over");
    assert.equal(refusal(buried, at(1_499)), "delayed");
    assert.deepEqual(nonces(join(buried, waiter("b"), 1, at(1_499))), { holders: [], waiters: ["b"] });
    const taken = join(buried, waiter("b"), 1, at(1_500));
    assert.deepEqual(nonces(taken), { holders: ["b"], waiters: [] });
    assert.deepEqual([taken.delays, taken.lastData], [[], undefined]);
    const waiting = join(joined("a"), { ...waiter("b"), delayMs: 500 }, 1, at(0));
    assert.deepEqual(bury(waiting, new Set(["session b"]), at(0))?.delays, []);
  });

  test("a session that says delete takes its data along", () => {
    const record = join(undefined, { ...waiter("a"), delayMs: 500, data: "secret", expiry: "delete" }, 1, at(0));
    assert.equal(bury(record, new Set(["session a"]), at(0))?.lastData, undefined);
  });

  test("what the dead leave is forgotten when somebody holds the lock after them", () => {
    const dead = withFences(join(undefined, { ...waiter("a"), data: "half done" }, 2, at(0)), 1);
    const record = withFences(join(dead, { ...waiter("b"), data: "alive" }, 2, at(0)), 2);
    const next = forgetData(record, new Set(["session a"]));
    assert.deepEqual(
      next.holders.map(({ data }) => data),
      [undefined, "alive"],
    );
    assert.equal(leave(bury(next, new Set(["session a"]), at(0)), "b", at(0)), undefined);
    assert.equal(forgetData(next, new Set(["session a"])), next, "there is nothing left to write");
  });

  test("a shorter retirement of another slot does not end a longer one", () => {
    const one = withFences(join(undefined, waiter("a"), 2, at(0)), 1);
    const both = withFences(join(one, waiter("b"), 2, at(0)), 2);
    const long = leave(both, "a", at(0), 1_000);
    assert.deepEqual(leave(long, "b", at(100), 10)?.retired, { until: 1_000, ms: 1_000 });
    assert.deepEqual(leave(long, "b", at(100), 2_000)?.retired, { until: 2_100, ms: 2_000 });
  });

  test("a retired lock goes to nobody until its time is over, and its line waits", () => {
    const record = leave(joined("a", "b"), "a", at(0), 1_000);
    assert.deepEqual(nonces(record), { holders: [], waiters: ["b"] });
    assert.equal(refusal(record, at(999)), "retired");
    assert.deepEqual(nonces(join(record, waiter("b"), 1, at(1_000))), { holders: ["b"], waiters: [] });
    assert.deepEqual(
      leave(joined("a", "b"), "b", at(0), 1_000)?.retired,
      undefined,
      "only a holder has done what the lock protects",
    );
  });

  test("the first in line looks after the holders, everybody else after the one before", () => {
    const record = joined("a", "b", "c");
    const seen = (nonce: string): string[] => ahead(record, nonce).map((one) => one.nonce);
    assert.deepEqual([seen("b"), seen("c"), seen("without a place")], [["a"], ["b"], ["c"]]);
  });

  test("a change concerns who holds now, who has somebody new ahead, and nobody else", () => {
    const line = joined("a", "b", "c", "d", "e");
    assert.deepEqual(concerned(line, join(line, waiter("f"), 1, at(0))), [], "one more in line");
    assert.deepEqual(concerned(line, leave(line, "a", at(0))), ["b"], "a release: c still looks after b");
    assert.deepEqual(concerned(line, leave(line, "c", at(0))), ["d"], "one gave up");
    assert.deepEqual(
      concerned(line, leave(line, "b", at(0))),
      ["c"],
      "the first gave up: the next looks after the holder",
    );
    assert.deepEqual(
      concerned(line, leave(line, "a", at(0), 1_000)),
      ["b"],
      "the first waits for the lock's retirement",
    );
    assert.deepEqual(concerned(undefined, joined("a")), []);
    assert.deepEqual(concerned(joined("a"), undefined), []);
  });

  test("a change concerns the first in line while a slot is free", () => {
    const two = withFences(join(withFences(join(undefined, waiter("a"), 2, at(0)), 1), waiter("b"), 2, at(0)), 2);
    const crowd = ["c", "d", "e"].reduce((record, nonce) => join(record, waiter(nonce), 2, at(0)), two);
    const buried = bury(crowd, new Set(["session a", "session b"]), at(0));
    assert.deepEqual(
      concerned(crowd, buried),
      ["c", "d"],
      "c holds, and d can have the other slot by a write of its own",
    );
    assert.deepEqual(concerned(crowd, leave(crowd, "a", at(0))), ["c", "d"], "d looks after b, too");
  });

  test("the line has an end", () => {
    const names = Array.from({ length: MOST_WAITERS + 5 }, (_, index) => `n${index}`);
    assert.equal(joined(...names).waiters.length, MOST_WAITERS);
  });
});

function at(wall: number): Moment {
  return { wall, isOver: ({ until }) => until <= wall };
}

function waiter(nonce: string): Waiter {
  return { nonce, session: `session ${nonce}`, owner: nonce, leaseMs: 1_000, delayMs: 0, expiry: "release" };
}

/** Each came by a write of its own. */
function joined(...names: readonly string[]): LockRecord {
  const [first = "", ...rest] = names;
  const start = withFences(join(undefined, waiter(first), 1, at(0)), 1);
  return rest.reduce((record, name) => join(record, waiter(name), 1, at(0)), start);
}

function nonces(record: LockRecord | undefined): { holders: string[]; waiters: string[] } {
  const names = (list: readonly Waiter[] = []): string[] => list.map(({ nonce }) => nonce);
  return { holders: names(record?.holders), waiters: names(record?.waiters) };
}
