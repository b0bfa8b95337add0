import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { PassingMap, PassingSet } from "./passing.ts";

test("A map that begins anew keeps what is in it", () => {
  const map = new PassingMap<number, string>();
  for (let number = 0; number < 10_000; number += 1) {
    map.set(number, `${number}`);
    if (number >= 100) assert.equal(map.delete(number - 100), true, "what was put in a hundred steps ago is there");
  }
  assert.equal(map.size, 100);
  assert.equal(map.get(9_900), "9900");
  assert.equal(map.has(9_899), false, "what was put in first has gone");
  assert.equal(map.delete(9_899), false, "what has gone cannot be removed");
  assert.deepEqual(
    map.values(),
    Array.from({ length: 100 }, (_, index) => `${9_900 + index}`),
  );
});

test("One can be gone through while it changes", () => {
  const set = new PassingSet<number>();
  for (let number = 0; number < 10; number += 1) set.add(number);
  const seen: number[] = [];
  for (const number of set) {
    seen.push(number);
    set.delete(number);
    for (let more = 0; more < 1_000; more += 1) set.add(1_000 + more);
  }
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(set.size, 1_000);
});

test("What has passed through is not kept", () => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as (options: { type: "minor" }) => void;
  const map = new PassingMap<number, number[]>();
  // It has been there for a while before it is used much.
  for (let number = -50; number < 0; number += 1) map.set(number, []);
  for (let number = -50; number < 0; number += 1) map.delete(number);
  for (let times = 0; times < 3; times += 1) gc({ type: "minor" });
  const before = usedBytes();
  let most = 0;
  for (let number = 0; number < 20_000; number += 1) {
    map.set(
      number,
      Array.from({ length: 50 }, () => number),
    );
    if (number >= 100) map.delete(number - 100);
    if (number % 1_000 !== 0) continue;
    gc({ type: "minor" });
    most = Math.max(most, usedBytes() - before);
  }
  // A plain map keeps 4 MB until the whole heap is collected.
  assert.ok(most < 1_500_000, `${most} bytes`);
});

function usedBytes(): number {
  return getHeapStatistics().used_heap_size;
}
