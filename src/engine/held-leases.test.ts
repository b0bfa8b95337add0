import assert from "node:assert/strict";
import { test } from "node:test";
import { HeldLeases } from "./held-leases.ts";
import type { Lease } from "./port.ts";

function lease(key: string, fence: number): Lease {
  return { queue: "cars", key, fence, since: { wall: 0, monotonic: 0 }, handle: undefined };
}

test("a holder is told of the loss of its own lease, once", () => {
  const told: number[] = [];
  const held = new HeldLeases();
  const lost = ({ fence }: Lease): void => void told.push(fence);
  held.add(lease("a", 1), lost);
  held.add(lease("b", 2), lost);
  held.add(lease("c", 3), undefined);
  held.lose({ queue: "cars", key: "a", fence: 7 });
  held.lose({ queue: "vans", key: "a", fence: 1 });
  held.lose({ queue: "cars", key: "c", fence: 3 });
  assert.deepEqual(told, []);
  held.lose({ queue: "cars", key: "a", fence: 1 });
  held.lose({ queue: "cars", key: "a", fence: 1 });
  held.remove(lease("b", 1));
  assert.deepEqual(held.all(), [lease("b", 2)]);
  held.remove(lease("b", 2));
  held.lose({ queue: "cars", key: "b", fence: 2 });
  assert.deepEqual(told, [1]);
});

test("a holder is told again of what is said of its lease until the store has spoken", () => {
  const told: number[] = [];
  const held = new HeldLeases();
  held.add(lease("a", 1), ({ fence }) => void told.push(fence));
  held.doubt(lease("a", 2));
  held.doubt(lease("b", 1));
  assert.deepEqual(told, []);
  held.doubt(lease("a", 1));
  held.doubt(lease("a", 1));
  assert.deepEqual(told, [1, 1]);
  assert.deepEqual(held.withFence(1), lease("a", 1));
  held.remove(lease("a", 1));
  held.doubt(lease("a", 1));
  assert.deepEqual(told, [1, 1]);
});

test("a key that comes back to the same handle was lost by whoever had it there", () => {
  const told: number[] = [];
  const held = new HeldLeases();
  const lost = ({ fence }: Lease): void => void told.push(fence);
  held.add(lease("a", 1), lost);
  held.add(lease("a", 2), lost);
  assert.deepEqual(told, [1]);
  assert.equal(held.size, 1);
});

test("every lease of a key below a fence is lost", () => {
  const told: number[] = [];
  const held = new HeldLeases();
  held.add(lease("a", 16), ({ fence }) => void told.push(fence));
  held.loseBelow("cars", "b", 32);
  held.loseBelow("cars", "a", 16);
  assert.deepEqual(told, []);
  held.loseBelow("cars", "a", 17);
  held.loseBelow("cars", "a", 17);
  assert.deepEqual(told, [16]);
});

test("the first and the last are announced", () => {
  const changes: boolean[] = [];
  const held = new HeldLeases((some) => changes.push(some));
  const lost = (): void => undefined;
  held.add(lease("a", 1), lost);
  held.add(lease("b", 2), lost);
  held.add(lease("a", 3), lost);
  held.remove(lease("b", 2));
  held.lose(lease("a", 3));
  assert.deepEqual(changes, [true, false]);
});
