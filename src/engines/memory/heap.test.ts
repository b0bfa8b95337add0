import assert from "node:assert/strict";
import { test } from "node:test";
import { Heap } from "./heap.ts";

interface Entry {
  readonly rank: number;
  slot: number;
}

/** A fixed sequence that looks shuffled: 7919 and 1000 have no common factor. */
function entries(count: number): Entry[] {
  return Array.from({ length: count }, (_, index) => ({ rank: (index * 7919) % count, slot: -1 }));
}

test("entries come out in order, also when some leave from the middle", () => {
  const heap = new Heap<Entry>((a, b) => a.rank < b.rank);
  const all = entries(1_000);
  for (const entry of all) heap.add(entry);
  const leaving = all.filter(({ rank }) => rank % 3 === 0);
  for (const entry of leaving) heap.remove(entry);
  const taken = [...heap.takeWhile(() => true)].map(({ rank }) => rank);
  assert.deepEqual(
    taken,
    Array.from({ length: 1_000 }, (_, rank) => rank).filter((rank) => rank % 3 !== 0),
  );
  assert.ok(all.every(({ slot }) => slot === -1));
});

test("only what is due is taken, and what comes in meanwhile counts", () => {
  const heap = new Heap<Entry>((a, b) => a.rank < b.rank);
  for (const rank of [5, 1, 9]) heap.add({ rank, slot: -1 });
  const taken: number[] = [];
  for (const { rank } of heap.takeWhile((entry) => entry.rank < 6)) {
    taken.push(rank);
    if (rank === 1) heap.add({ rank: 3, slot: -1 });
  }
  assert.deepEqual(taken, [1, 3, 5]);
  assert.equal(heap.size, 1);
});

test("an entry stands in a heap once", () => {
  const heap = new Heap<Entry>((a, b) => a.rank < b.rank);
  const entry: Entry = { rank: 1, slot: -1 };
  heap.add(entry);
  assert.throws(() => heap.add(entry));
  heap.remove(entry);
  heap.remove(entry);
  assert.equal(heap.size, 0);
});
