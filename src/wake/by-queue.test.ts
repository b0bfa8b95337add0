import assert from "node:assert/strict";
import { test } from "node:test";
import { ByQueue } from "./by-queue.ts";

test("listeners are found by their queue, and queues are forgotten with the last of them", () => {
  const listeners = new ByQueue<string>();
  const leave = [listeners.add("cars", "a"), listeners.add("cars", "b"), listeners.add("vans", "c")];
  assert.deepEqual([...listeners.of("cars")], ["a", "b"]);
  assert.deepEqual([...listeners.of("bikes")], []);
  assert.deepEqual([...listeners.all()], ["a", "b", "c"]);
  leave[0]?.();
  assert.deepEqual([...listeners.of("cars")], ["b"]);
  assert.equal(listeners.size, 2);
  leave[1]?.();
  assert.equal(listeners.size, 1);
  const again = listeners.add("cars", "d");
  leave[0]?.();
  leave[1]?.();
  assert.deepEqual([...listeners.of("cars")], ["d"], "whoever left before is not the last of those who came after");
  again();
  leave[2]?.();
  assert.equal(listeners.size, 0);
});
