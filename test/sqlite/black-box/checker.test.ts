/** The checker must be able to fail: each forged history breaks one promise. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { violations } from "./checker.ts";
import type { Fact } from "./history.ts";

const good: readonly Fact[] = [
  submitted("a", 1),
  submitted("b", 3),
  began("a", 11, "w1", 10, 100),
  { type: "renewed", at: 50, until: 150, fence: 11 },
  // Stopped here for long; the lease runs out at 150, and another takes over.
  began("a", 12, "w2", 160, 300),
  { type: "ended", at: 200, item: "a", fence: 11, done: true },
  { type: "refused", at: 201, item: "a", fence: 11 },
  { type: "ended", at: 210, item: "a", fence: 12, done: true },
  { type: "settled", at: 211, item: "a", fence: 12 },
  began("b", 13, "w2", 212, 400),
  { type: "killed", at: 230, worker: "w2" },
  // Began when its lease was long over, and knew it.
  { ...began("b", 14, "w1", 900, 900), key: "k" },
  began("b", 15, "w3", 410, 600),
  { type: "ended", at: 420, item: "b", fence: 15, done: true },
  { type: "settled", at: 421, item: "b", fence: 15 },
  { type: "final", at: 1_000, item: "a", state: "done" },
  { type: "final", at: 1_000, item: "b", state: "done" },
];

const forged: Readonly<Record<string, readonly [history: readonly Fact[], expected: RegExp]>> = {
  "two at a time": [replace(began("a", 12, "w2", 140, 300)), /w2 \(fence 12\) began .* w1 \(fence 11\) had it until/],
  "a later run under a lower fence": [
    replace({ ...began("b", 13, "w2", 212, 400), fence: 5 }),
    /fence 11\) began .* \(fence 5\) had it/,
  ],
  "a fence given twice": [[...good, began("c", 15, "w4", 700, 800)], /fence 15 of k was given 2 times/],
  "an end accepted under a lost lease": [
    replace({ type: "settled", at: 201, item: "a", fence: 11 }, "refused"),
    /w1 \(fence 11\) settled after w2/,
  ],
  "an item done twice": [
    replace({ type: "settled", at: 201, item: "a", fence: 11 }, "refused"),
    /a was accepted as done 2 times/,
  ],
  "the later one first": [replace(submitted("a", 5)), /a began before b, which came first/],
  "an item that is gone": [
    good.filter((fact) => !(fact.type === "final" && fact.item === "b")),
    /b was acknowledged and in the end is unknown/,
  ],
  "an item that never ran": [
    [...good, submitted("d", 500), { type: "final", at: 1_000, item: "d", state: "waiting" }],
    /d .* is waiting/,
  ],
};

describe("the checker", () => {
  test("accepts a good history", () => assert.deepEqual(violations(good), []));

  for (const [name, [history, expected]] of Object.entries(forged)) {
    test(`finds ${name}`, () => {
      const found = violations(history.toSorted((a, b) => a.at - b.at));
      assert.ok(
        found.some((violation) => expected.test(violation)),
        `It found: ${found.join("; ")}`,
      );
    });
  }
});

function submitted(item: string, from: number): Fact {
  return { type: "submitted", from, at: from + 1, item, key: "k", level: "low" };
}

function began(
  item: string,
  fence: number,
  worker: string,
  at: number,
  until: number,
): Extract<Fact, { type: "began" }> {
  return { type: "began", at, until, worker, item, key: "k", fence, attempt: 1 };
}

/** The good history with one fact in place of another about the same thing. */
function replace(fact: Fact, type: Fact["type"] = fact.type): readonly Fact[] {
  const at = good.findIndex(
    (old) =>
      old.type === type &&
      (fact.type === "began"
        ? old.at === fact.at || sameFence(old, fact)
        : sameItem(old, fact) || sameFence(old, fact)),
  );
  return good.with(at, fact);
}

function sameItem(a: Fact, b: Fact): boolean {
  return "item" in a && "item" in b && a.item === b.item;
}

function sameFence(a: Fact, b: Fact): boolean {
  return "fence" in a && "fence" in b && a.fence === b.fence;
}
