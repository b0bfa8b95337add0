import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/manual-clock.ts";
import { instant } from "../../domain/clock.ts";
import type { ClaimRequest, Ending, Settlement, SettleResult } from "../../engine/port.ts";
import { Answers } from "./answers.ts";
import { type Car, Train } from "./train.ts";
import { Trains } from "./trains.ts";

const KEY = 7;
const AHEAD_MS = 50;
const OWNER = { worker: "w", leaseMs: 30_000 };

interface Stage {
  readonly clock: ManualClock;
  readonly trains: Trains;
  readonly train: Train;
  readonly cars: readonly Car[];
}

/** Fences are 1, 2, 3 and so on. */
function stage(count: number): Stage {
  const clock = new ManualClock();
  const trains = new Trains();
  const cars = Array.from({ length: count }, (_, index): Car => {
    const item = { id: `@${index}`, queue: "cars", key: "k", level: "normal", payload: { type: "", body: "" } };
    const lease = { queue: "cars", key: "k", fence: index + 1, since: instant(clock), handle: KEY };
    const grant = { lease, item: { ...item, headers: undefined, submittedAt: 0, attempt: 1 } };
    return { grant, ord: index, spot: `(0,${index})` };
  });
  const train = new Train(cars, OWNER, clock.monotonic() + AHEAD_MS);
  trains.begin(train);
  return { clock, trains, train, cars };
}

function asking(max: number, worker: string = OWNER.worker): ClaimRequest {
  const { signal } = new AbortController();
  return { ...OWNER, worker, queue: "cars", max, patienceMs: 1_000, signal };
}

/** Ends an item by its fence, as the store does it. */
function end({ clock, trains, train, cars }: Stage, fence: number, ending: Ending = { type: "done" }) {
  const car = cars[fence - 1];
  assert.ok(car !== undefined);
  const answers = new Answers(1);
  const settlement: Settlement = { lease: car.grant.lease, ending };
  train.end(settlement, answers, 0, clock.monotonic());
  if (train.offered(clock.monotonic()) !== undefined) trains.offer(train);
  return answers.all;
}

const fencesOf = (stage_: Stage, max = 1, worker?: string): readonly number[] =>
  stage_.trains.take(asking(max, worker), max, stage_.clock.monotonic()).map(({ lease }) => lease.fence);

test("when an item is done the next begins, and a report says what is done and what runs", async () => {
  const on = stage(4);
  assert.deepEqual(fencesOf(on), [], "the first one runs");
  const first = end(on, 1);
  assert.deepEqual(fencesOf(on, 8), [2]);
  assert.deepEqual(fencesOf(on, 8), [], "one at a time");
  const second = end(on, 2);
  assert.deepEqual(fencesOf(on), [3]);
  const report = on.train.report();
  assert.equal(report.was, 1);
  assert.deepEqual(
    report.done.map(({ ord }) => ord),
    [0, 1],
  );
  assert.equal(report.at.grant.lease.fence, 3);
  assert.equal(report.last, undefined);
  on.trains.reported(report, "settled");
  assert.deepEqual(await Promise.all([first, second]), [["settled"], ["settled"]]);
  assert.deepEqual(on.train.fences, [3]);
  assert.equal(on.train.hasNews, false, "the train has nothing to tell");
  assert.equal(on.train.has(2), false, "what is certain is none of its business");
});

test("another worker gets none of it, and nothing begins when its time is over", async () => {
  const on = stage(4);
  void end(on, 1);
  assert.deepEqual(fencesOf(on, 1, "other"), []);
  await on.clock.pass(AHEAD_MS);
  assert.deepEqual(fencesOf(on), []);
  const { done, last } = on.train.report();
  assert.deepEqual([done.length, last?.lease.fence, last?.ending.type], [0, 1, "done"]);
});

test("an item that ends after the time of its train is the last", async () => {
  const on = stage(4);
  await on.clock.pass(AHEAD_MS);
  const answer = end(on, 1);
  assert.deepEqual(fencesOf(on), []);
  on.trains.reported(on.train.report(), "settled");
  assert.deepEqual(await answer, ["settled"]);
  assert.ok(on.train.isOver);
  assert.equal(on.trains.get(KEY), undefined);
});

test("what nobody comes for until the report is not begun", () => {
  const on = stage(3);
  void end(on, 1);
  const report = on.train.report();
  assert.equal(report.last?.lease.fence, 1);
  assert.deepEqual(fencesOf(on), []);
});

test("an item that is not simply done ends the train behind what was done", async () => {
  const on = stage(4);
  const first = end(on, 1);
  assert.deepEqual(fencesOf(on), [2]);
  const second = end(on, 2, { type: "release" });
  assert.deepEqual(fencesOf(on), []);
  const report = on.train.report();
  assert.deepEqual([report.done.length, report.at.grant.lease.fence, report.last?.ending.type], [1, 2, "release"]);
  on.trains.reported(report, "lost");
  assert.deepEqual([await first, await second], [["settled"], ["lost"]]);
});

test("a report whose reply was lost is repeated as it was, however far the train has come", async () => {
  const on = stage(5);
  const failed = end(on, 1);
  assert.deepEqual(fencesOf(on), [2]);
  const unknown = on.train.report();
  assert.ok(on.train.isBeingTold);
  // Meanwhile it goes on.
  void end(on, 2).catch(() => undefined);
  assert.deepEqual(fencesOf(on), [3]);
  on.train.failed(new Error("lost"));
  await assert.rejects(failed);
  assert.deepEqual(on.train.fences, [1, 2], "the store knows one of these");
  const again = end(on, 1);
  const repeated = on.train.report();
  assert.deepEqual([repeated.was, repeated.at, repeated.done], [unknown.was, unknown.at, unknown.done]);
  assert.equal(repeated.last, undefined);
  on.trains.reported(repeated, "settled");
  assert.deepEqual(await again, ["settled"]);
  assert.ok(on.train.hasNews, "the rest is told next");
  assert.equal(on.train.report().was, 2);
});

test("whoever comes again after his call failed hears what became of it", async () => {
  const on = stage(3);
  const failed = end(on, 1);
  assert.deepEqual(fencesOf(on), [2]);
  on.train.report();
  on.train.failed(new Error("lost"));
  await assert.rejects(failed);
  // The next one's report carries it, before the first caller is back.
  void end(on, 2);
  on.trains.reported(on.train.report(), "settled");
  const lease = on.cars[0]?.grant.lease;
  assert.ok(lease !== undefined);
  const heard: (SettleResult | undefined)[] = [on.trains.hear(lease), on.trains.hear(lease)];
  assert.deepEqual(heard, ["settled", undefined]);
});

test("when its key is somebody else's all hear that it is lost, and what runs is named", async () => {
  const on = stage(3);
  const first = end(on, 1);
  assert.deepEqual(fencesOf(on), [2]);
  assert.equal(on.trains.lost(on.train)?.fence, 2);
  assert.deepEqual(await first, ["lost"]);
  assert.ok(on.train.isOver);
  assert.equal(on.trains.get(KEY), undefined);
});

test("a stop takes back what is offered and lets what runs end", () => {
  const offered = stage(3);
  void end(offered, 1);
  offered.trains.stop();
  assert.deepEqual(fencesOf(offered), []);
  assert.equal(offered.train.report().last?.lease.fence, 1);

  const running = stage(3);
  running.trains.stop();
  assert.equal(running.train.hasNews, false, "the train has nothing to tell");
  void end(running, 1);
  assert.deepEqual(fencesOf(running), []);
  assert.equal(running.train.report().last?.lease.fence, 1);
});
