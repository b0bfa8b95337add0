import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/manual-clock.ts";
import { instant } from "../../domain/clock.ts";
import type { ClaimRequest, Grant, Lease } from "../../engine/port.ts";
import { Ahead } from "./ahead.ts";

interface Stage {
  readonly clock: ManualClock;
  readonly ahead: Ahead;
  readonly back: Lease[];
}

function stage(): Stage {
  const clock = new ManualClock();
  const back: Lease[] = [];
  return { clock, back, ahead: new Ahead(clock, (leases) => back.push(...leases)) };
}

function request(max: number, worker: string = "w"): ClaimRequest {
  const { signal } = new AbortController();
  return { queue: "cars", worker, max, leaseMs: 30_000, patienceMs: 1_000, signal };
}

function grants(clock: ManualClock, count: number): readonly Grant[] {
  return Array.from({ length: count }, (_, index) => {
    const key = `k${index}`;
    const item = { id: key, queue: "cars", key, level: "normal", payload: { type: "", body: "" }, headers: undefined };
    const lease = { queue: "cars", key, fence: index + 1, since: instant(clock), handle: index };
    return { lease, item: { ...item, submittedAt: 0, attempt: 1 } };
  });
}

/** Asks, is given so many, and ends one of them after so long. */
async function work({ clock, ahead }: Stage, slots: number, takesMs: number): Promise<void> {
  ahead.ask(request(slots));
  const given = grants(clock, slots);
  ahead.gave(given[0]);
  await clock.pass(takesMs);
  ahead.end(given.slice(0, 1).map(({ lease }) => ({ lease, ending: { type: "done" } })));
}

test("only a worker with many slots whose items take no time is given keys ahead", async () => {
  const quick = stage();
  assert.equal(quick.ahead.lack(), 0, "nobody has asked");
  await work(quick, 64, 2);
  assert.equal(quick.ahead.lack(), 256);
  await work(quick, 64, 5);
  assert.equal(quick.ahead.lack(), 128, "it would not come for more in time");
  await work(quick, 64, 50);
  assert.equal(quick.ahead.lack(), 0, "it is slow now");

  const small = stage();
  await work(small, 4, 2);
  assert.equal(small.ahead.lack(), 0);
});

test("an item that does not end is not waited for to be told that it is slow", async () => {
  const { clock, ahead } = stage();
  await work({ clock, ahead, back: [] }, 64, 2);
  ahead.gave(grants(clock, 64)[0]);
  await clock.pass(10);
  assert.equal(ahead.lack(), 0);
});

test("what is kept goes to whom it was leased for, and counts", async () => {
  const { clock, ahead, back } = stage();
  await work({ clock, ahead, back }, 64, 2);
  ahead.keep(grants(clock, 100), 0, request(64));
  assert.equal(ahead.lack(), 156);
  assert.equal(ahead.order(request(64)), 156);
  assert.equal(ahead.lack(), 0, "they are on their way");
  ahead.keep([], 156, request(64));
  assert.equal(ahead.take(request(64)).length, 64);
  assert.equal(ahead.take(request(64)).length, 36);
  assert.equal(ahead.take(request(64)).length, 0);
  ahead.keep(grants(clock, 5), 0, request(64));
  assert.equal(ahead.take(request(64, "other")).length, 0);
  assert.equal(back.length, 0);
  ahead.ask(request(64, "other"));
  assert.equal(back.length, 5, "another worker has taken over");
  assert.equal(ahead.lack(), 0);
});

test("what nobody comes for is given back", async () => {
  const { clock, ahead, back } = stage();
  await work({ clock, ahead, back }, 64, 2);
  ahead.keep(grants(clock, 3), 0, request(64));
  await clock.pass(15);
  ahead.keep(grants(clock, 2), 0, request(64));
  await clock.pass(6);
  assert.equal(back.length, 3);
  await clock.pass(30);
  assert.equal(back.length, 5);
  assert.equal(ahead.take(request(64)).length, 0);
  assert.equal(ahead.lack(), 0, "it did not come");
});

test("what comes after another worker has taken over goes back", async () => {
  const { clock, ahead, back } = stage();
  await work({ clock, ahead, back }, 64, 2);
  const ordered = ahead.order(request(64));
  ahead.ask(request(64, "other"));
  ahead.keep(grants(clock, ordered), ordered, request(64));
  assert.equal(back.length, ordered, "it is leased in the name of the first, and for as long as that one said");
  assert.equal(ahead.take(request(64, "other")).length, 0);
});
