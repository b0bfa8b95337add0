import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { describeWarning, type BatonEvent } from "../../src/index.ts";
import { Lateness } from "../kit/lateness.ts";
import { type Child, Desk, now } from "./desk.ts";

const BLOCK_MS = 4_000;

interface Told {
  readonly began?: string;
  readonly attempt?: number;
  readonly blocks?: string;
  readonly event?: BatonEvent;
}

/** All that the child tells until something is so. */
async function hear(child: Child, until: (told: Told) => boolean): Promise<readonly Told[]> {
  const heard: Told[] = [];
  for (;;) {
    const told = await child.next<Told>();
    heard.push(told);
    if (until(told)) return heard;
  }
}

async function startFreezing(desk: Desk): Promise<Child> {
  const child = desk.start("freeze", desk.url, String(BLOCK_MS));
  await hear(child, (told) => (told as unknown) === "ready");
  return child;
}

test("an event loop that is blocked for two leases costs no attempt that no handler saw", async (context) => {
  const desk = new Desk(context);
  const cars = (await desk.connect()).queue<string>("cars", { history: "1h" });
  const child = await startFreezing(desk);
  const blocked = await cars.submit("k1", "block", { id: "first" });
  await hear(child, ({ blocks }) => blocks !== undefined);
  const behind = await cars.submit("k2", "quick", { id: "second" });

  const [first, second] = await Promise.all([blocked.outcome({ timeout: "30s" }), behind.outcome({ timeout: "30s" })]);
  assert.deepEqual(
    [first.state, first.attempt],
    ["done", 2],
    "one attempt was lost to the block, and one handler saw it",
  );
  assert.deepEqual([second.state, second.attempt], ["done", 1]);
  const heard = await hear(child, ({ event }) => event?.type === "done" && event.item.key === "k1");
  const stalls = heard.flatMap(({ event }) => (event?.type === "stalled" ? [event] : []));
  assert.deepEqual(
    stalls.map(({ cause, keys }) => [cause, keys]),
    [["event loop blocked", ["k1"]]],
  );
  assert.match(stalls.map(describeWarning).join(), /held 1 lease\(s\) \(k1\)/);
});

test("work that comes while one process is blocked starts on another, at once", async (context) => {
  const desk = new Desk(context);
  const cars = (await desk.connect()).queue<string>("cars");
  const child = await startFreezing(desk);
  using lateness = new Lateness();
  await cars.submit("k1", "block");
  await hear(child, ({ blocks }) => blocks !== undefined);
  await cars.submitMany(["k2", "k3"].map((key) => ({ key, payload: "quick" })));
  // Nothing tells that the blocked process leaves them alone. If it does not, it has them by now, for a lease.
  await wait(200);
  const from = now();
  const taken = await cars.take({ max: 2, wait: "5s" });
  const tookMs = now() - from;
  context.diagnostic(`taken elsewhere after ${tookMs.toFixed(1)} ms`);
  assert.deepEqual(
    taken.map(({ item }) => [item.key, item.attempt]),
    [
      ["k2", 1],
      ["k3", 1],
    ],
  );
  lateness.assertWithin(tookMs, 500, "the start of the items elsewhere");
});
