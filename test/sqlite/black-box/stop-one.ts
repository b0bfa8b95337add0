import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type Desk, now } from "../desk.ts";
import { violations } from "./checker.ts";
import { retire } from "./faults.ts";
import { readHistory } from "./history.ts";
import { drained, fact, recordFinals } from "./rounds.ts";
import { LEASE_MS, QUEUE } from "./settings.ts";

const DRAIN_MS = 30_000;

/** Two workers: the one that is at an item is stopped for two leases. It learns of the loss, and the other's work is untouched. */
export async function stopOne(context: TestContext, desk: Desk): Promise<void> {
  const baton = await desk.connect();
  const cars = baton.queue(QUEUE);
  const [first, second] = ["first", "second"].map((name) =>
    desk.start("../black-box/worker", desk.url, desk.folder, name),
  );
  assert.ok(first !== undefined && second !== undefined);
  await Promise.all([first.next(), second.next()]);
  // Longer than the stop: one is at it when it is stopped, and the other when the first goes on.
  await cars.submit("car1", { workMs: 4 * LEASE_MS }, { id: "long" });
  const began = await fact(desk, (one) => one.type === "began");
  assert.ok("worker" in began);
  const holder = began.worker === "first" ? first : second;
  const other = began.worker === "first" ? "second" : "first";
  const stopped = now();
  holder.process.kill("SIGSTOP");
  const taken = await fact(desk, (one) => one.type === "began" && one.worker === other);
  context.diagnostic(`taken over ${(taken.at - stopped).toFixed(0)} ms after the stop, with a lease of ${LEASE_MS} ms`);
  await wait(Math.max(0, stopped + 2 * LEASE_MS - now()));
  holder.process.kill("SIGCONT");
  const refused = await fact(desk, (one) => one.type === "refused");
  assert.ok("fence" in taken && "fence" in refused && refused.fence < taken.fence);

  const { running } = (await cars.item("long")) ?? {};
  assert.deepEqual([running?.worker, running?.fence], [other, taken.fence]);
  await drained(baton, DRAIN_MS);
  await Promise.all([first, second].map(retire));
  const { state, attempt } = (await cars.item("long")) ?? {};
  assert.deepEqual([state, attempt], ["done", 2]);
  await recordFinals(baton, desk.folder, [{ item: "long" }]);
  const history = readHistory(desk.folder);
  assert.deepEqual(violations(history), []);
  assert.equal(history.filter(({ type }) => type === "settled").length, 1);
}
