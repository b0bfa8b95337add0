import assert from "node:assert/strict";
import { test } from "node:test";
import type { Queue } from "../../src/index.ts";
import { Desk } from "./desk.ts";

const ATTEMPTS = 4;
const LEASE = "500ms";
const KEYS = 5;
const ITEMS = 400;
const POISONS: readonly number[] = [50, 51, 233];
/** The process may die so often more than its poisonous items have attempts. */
const MORE_CRASHES = 3;

test("items that kill their process take no innocent item with them", { timeout: 120_000 }, async (context) => {
  const desk = new Desk(context);
  const baton = await desk.connect();
  const cars = baton.queue<string>("cars", { history: "1h" });
  const all = Array.from({ length: ITEMS }, (_, number) => ({
    key: `car${number % KEYS}`,
    payload: POISONS.includes(number) ? "poison" : "fine",
    id: `item${number}`,
  }));
  await cars.submitMany(all);

  let crashes = 0;
  for (let isOver = false; !isOver;) {
    const child = desk.start("poisoned", desk.url, LEASE, String(ATTEMPTS));
    await child.exited;
    isOver = child.process.signalCode === null;
    if (isOver) assert.equal(child.process.exitCode, 0, "The worker stops when the queue is empty.");
    else crashes += 1;
    const most = POISONS.length * ATTEMPTS + MORE_CRASHES;
    assert.ok(crashes <= most, `The process died ${crashes} times, of ${most} that the poisonous items account for.`);
  }

  const dead = (await cars.dead()).map(({ id }) => id).toSorted();
  assert.deepEqual(dead, POISONS.map((number) => `item${number}`).toSorted(), "Only poisonous items are dead letters.");
  const innocents = all.filter(({ payload }) => payload === "fine");
  const losses = await Promise.all(innocents.map(({ id }) => lossesOf(cars, id)));
  const hurt = losses.filter((count) => count > 0).length;
  assert.ok(Math.max(...losses) <= 2, `An innocent item lost ${Math.max(...losses)} attempts to its neighbours.`);
  context.diagnostic(`the process died ${crashes} times, and ${hurt} innocent items lost an attempt`);
});

/** How many of its attempts ended with a lost lease. The item must be done. */
async function lossesOf(cars: Queue<string>, id: string): Promise<number> {
  const outcome = (await cars.item(id))?.outcome;
  assert.equal(outcome?.state, "done", `${id} is done in the end.`);
  return outcome?.attempts?.filter(({ end }) => end === "lost").length ?? 0;
}
