/** A handler that blocks the event loop takes the leases of others with it, whose turn has not come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LEASE_MS, setStage } from "../../test/worker-stage.ts";

/** What ran, with its attempt, when key `blocks` blocks the event loop for longer than the lease each time. */
async function play(attempts: number): Promise<{ readonly ran: readonly string[]; readonly dead: readonly string[] }> {
  const { queue, clock } = setStage({ retry: { attempts, delay: 0 } });
  for (const key of ["blocks", "car1", "car2"]) await queue.submit(key, 1);
  const ran: string[] = [];
  const worker = queue.work(
    ({ key, attempt }) => {
      ran.push(`${key} ${attempt}`);
      if (key === "blocks") void clock.stall(LEASE_MS * 2);
    },
    { concurrency: 3 },
  );
  await clock.pass(LEASE_MS * 10);
  await worker.stop();
  return { ran, dead: (await queue.dead()).map(({ key }) => key) };
}

test("attempts that no handler saw do not use up those of an item", async () => {
  const { ran, dead } = await play(2);
  assert.deepEqual(
    ran.filter((one) => one.startsWith("blocks")),
    ["blocks 1", "blocks 2"],
  );
  assert.deepEqual(ran.filter((one) => one.startsWith("car")).length, 2, "each of the others ran once");
  assert.deepEqual(dead, ["blocks"]);
});

test("an item with one attempt is not begun when that one was lost", async () => {
  const { ran, dead } = await play(1);
  assert.deepEqual(ran, ["blocks 1"]);
  assert.deepEqual(new Set(dead), new Set(["blocks", "car1", "car2"]));
});
