import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import { never, ScriptedEngine } from "../../test/scripted-engine.ts";
import { type Instant, instant } from "../domain/clock.ts";
import { Cancelled, HandlerTimeout, LeaseLost, Stopping } from "../domain/errors.ts";
import { encodePayload } from "../domain/payload.ts";
import type { Renewal, RenewResult } from "../engine/port.ts";
import { memoryEngine } from "../engines/memory/index.ts";
import type { WorkerEvent } from "./events.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { Outages } from "./outages.ts";
import { HeldItem } from "./held-item.ts";

const LEASE = 3_000;
const RENEW_AFTER = 1_000;
/** The lease without its margin of half a second. */
const USABLE = 2_500;

let clock: ManualClock;
let engine: ScriptedEngine;
let events: WorkerEvent[];
let keeper: LeaseKeeper;

beforeEach(() => {
  clock = new ManualClock();
  engine = new ScriptedEngine(memoryEngine({ clock }));
  engine.onRenew = renewAll;
  events = [];
  keeper = newKeeper();
});

function newKeeper(timeoutMs?: number): LeaseKeeper {
  const emit = (event: WorkerEvent): void => void events.push(event);
  const outages = new Outages(clock, emit);
  return new LeaseKeeper({ engine, clock, emit, outages, random: () => 1 }, LEASE, timeoutMs);
}

function renewAll(renewals: readonly Renewal[]): Promise<readonly RenewResult[]> {
  const since = instant(clock);
  return Promise.resolve(renewals.map(() => ({ ok: true, since, cancelRequested: false })));
}

function granted(key: string, since: Instant): HeldItem {
  const lease = { queue: "cars", key, fence: 7, since, handle: undefined };
  const item = {
    id: key,
    queue: "cars",
    key,
    level: "normal",
    payload: encodePayload(null),
    headers: undefined,
    submittedAt: 0,
    attempt: 1,
  };
  return new HeldItem({ lease, item }, LEASE, clock, (changed) => keeper.noteProgress(changed));
}

function stalls(): (readonly string[])[] {
  return events.flatMap((event) => (event.type === "stalled" ? [event.keys] : []));
}

describe("what a process that stood still held is named", () => {
  test("also when the handler that blocked ends before the timer that is late", async () => {
    const held = begin("car1");
    void clock.stall(LEASE * 2);
    keeper.remove(held);
    await clock.pass(0);
    assert.deepEqual(stalls(), [["car1"]]);
  });

  test("also when another run begins before the timer that is late", async () => {
    begin("car1");
    void clock.stall(LEASE * 2);
    begin("car2");
    await clock.pass(0);
    assert.deepEqual(stalls(), [["car1", "car2"]]);
  });

  test("also what was granted meanwhile, and is heard of after the timer", async () => {
    keeper.remove(begin("car1"));
    await clock.pass(0);
    const since = instant(clock);
    await clock.stall(LEASE * 2);
    assert.deepEqual(stalls(), [], "nothing was held, as far as was known");
    keeper.add(granted("car2", since), granted("car3", since));
    assert.deepEqual(stalls(), [["car2", "car3"]]);
  });
});

function begin(key: string, since: Instant = instant(clock)): HeldItem {
  const held = granted(key, since);
  keeper.add(held);
  keeper.began(held);
  return held;
}

function told(): string[] {
  return events.map((event) => ("why" in event ? `${event.type} ${event.why}` : event.type));
}

function renewedKeys(): string[][] {
  return engine.renewals.map((batch) => batch.map(({ lease }) => lease.key));
}

describe("a lease that is kept", () => {
  test("is renewed at a third of its time, again and again", async () => {
    const held = begin("car1");
    await clock.pass(RENEW_AFTER - 1);
    assert.deepEqual(renewedKeys(), []);
    await clock.pass(1);
    assert.deepEqual(renewedKeys(), [["car1"]]);
    await clock.pass(LEASE * 10);
    assert.equal(engine.renewals.length, 31);
    held.check();
    assert.deepEqual(events, []);
  });

  test("is renewed together with others that are due", async () => {
    begin("car1");
    begin("car2");
    await clock.pass(500);
    begin("car3");
    await clock.pass(RENEW_AFTER);
    assert.deepEqual(renewedKeys(), [["car1", "car2"], ["car3"]]);
  });

  test("is left alone when its run has ended", async () => {
    const held = begin("car1");
    await clock.pass(500);
    keeper.remove(held);
    await clock.pass(LEASE * 2);
    assert.deepEqual(renewedKeys(), []);
    assert.equal(held.signal.aborted, false, "the handler may go on");
  });

  test("is no loss when its run was settled while the renewal was under way", async () => {
    const reply = Promise.withResolvers<readonly RenewResult[]>();
    engine.onRenew = () => reply.promise;
    const held = begin("car1");
    await clock.pass(RENEW_AFTER);
    keeper.remove(held);
    reply.resolve([{ ok: false }]);
    await clock.pass(0);
    assert.deepEqual(events, []);
    assert.equal(held.lost, false, "the lease is not lost");
  });
});

describe("a lease that cannot be kept", () => {
  test("ends at its local deadline although the store is silent", async () => {
    engine.onRenew = never;
    const held = begin("car1");
    const { signal } = held;
    await clock.pass(USABLE - 1);
    held.check();
    assert.equal(signal.aborted, false, "the handler may go on");
    await clock.pass(1);
    assert.ok(signal.aborted && signal.reason instanceof LeaseLost);
    assert.throws(() => held.check(), LeaseLost);
    assert.deepEqual(told(), ["lost expired"]);
  });

  test("ends at its local deadline although a renewal arrives before the timer that is late", async () => {
    const reply = Promise.withResolvers<readonly RenewResult[]>();
    engine.onRenew = () => reply.promise;
    const held = begin("car1");
    await clock.pass(RENEW_AFTER);
    reply.resolve([{ ok: true, since: instant(clock), cancelRequested: false }]);
    await clock.stall(USABLE - RENEW_AFTER + 10);
    assert.ok(held.signal.aborted && held.signal.reason instanceof LeaseLost);
    assert.deepEqual(told(), ["stalled", "lost expired"]);
  });

  test("is asked for at once when somebody says that its key went to another, and is lost if the store says so too", async () => {
    const held = begin("car1");
    const other = begin("car2");
    keeper.doubt({ ...held.grant.lease, fence: held.fence + 1 });
    await clock.pass(0);
    assert.deepEqual(renewedKeys(), [], "that was another lease of the key");
    engine.onRenew = () => Promise.resolve([{ ok: false }]);
    keeper.doubt({ ...held.grant.lease });
    keeper.doubt({ ...held.grant.lease });
    await clock.pass(0);
    assert.ok(held.signal.aborted && held.signal.reason instanceof LeaseLost);
    assert.deepEqual(told(), ["lost taken"]);
    keeper.doubt(held.grant.lease);
    engine.onRenew = renewAll;
    await clock.pass(RENEW_AFTER);
    assert.deepEqual(renewedKeys(), [["car1"], ["car2"]]);
    assert.deepEqual(told(), ["lost taken"]);
    assert.equal(other.lost, false, "the other lease is not lost");
  });

  test("is kept when somebody says falsely that its key went to another", async () => {
    const held = begin("car1");
    await clock.pass(RENEW_AFTER / 2);
    keeper.doubt(held.grant.lease);
    await clock.pass(0);
    assert.deepEqual(renewedKeys(), [["car1"]]);
    await clock.pass(RENEW_AFTER);
    assert.deepEqual(renewedKeys(), [["car1"], ["car1"]]);
    assert.equal(held.lost, false, "the lease is not lost");
    assert.deepEqual(told(), []);
  });

  test("that is not to be renewed any more is not renewed for what somebody says", async () => {
    keeper = newKeeper(100);
    const held = begin("car1");
    await clock.pass(100);
    assert.ok(held.signal.reason instanceof HandlerTimeout);
    keeper.doubt(held.grant.lease);
    await clock.pass(USABLE);
    assert.deepEqual(renewedKeys(), []);
    assert.deepEqual(told(), ["lost expired"]);
  });

  test("is asked for again soon after a renewal failed, and ends at its deadline", async () => {
    engine.onRenew = () => Promise.reject(new Error("no connection"));
    const held = begin("car1");
    await clock.pass(RENEW_AFTER + LEASE / 12);
    assert.equal(engine.renewals.length, 2);
    await clock.pass(USABLE);
    assert.ok(held.lost);
    assert.equal(told().filter((event) => event === "lost expired").length, 1);
    const tries = engine.renewals.length;
    await clock.pass(LEASE);
    assert.equal(engine.renewals.length, tries, "nothing is renewed that is lost");
  });

  test("is kept when the store answers again in time", async () => {
    engine.onRenew = () => Promise.reject(new Error("no connection"));
    const held = begin("car1");
    await clock.pass(RENEW_AFTER + LEASE / 12);
    engine.onRenew = renewAll;
    await clock.pass(LEASE * 3);
    assert.equal(held.lost, false, "the lease is not lost");
  });

  test("is lost at once when the store says so", async () => {
    engine.onRenew = () => Promise.resolve([{ ok: false }]);
    const held = begin("car1");
    await clock.pass(RENEW_AFTER);
    assert.ok(held.signal.reason instanceof LeaseLost);
    assert.deepEqual(told(), ["lost taken"]);
  });

  test("counts from when it was asked for: one whose reply was slow ends first, although it came last", async () => {
    engine.onRenew = never;
    const old = instant(clock);
    await clock.pass(800);
    const young = begin("car1");
    await clock.pass(700);
    const late = begin("car2", old);
    await clock.pass(USABLE - 1_500);
    assert.ok(late.lost);
    assert.equal(young.lost, false, "the younger lease is not lost");
    // It was past a third when it came, so it was the first to be renewed too.
    assert.deepEqual(renewedKeys()[0], ["car2"]);
    assert.ok(!told().includes("stalled"), "a slow reply is no stall");
  });

  test("is lost when the wall clock jumps: the machine may have slept", async () => {
    engine.onRenew = never;
    const held = begin("car1");
    clock.stepWall(30_000);
    assert.throws(() => held.check(), LeaseLost);
    await clock.pass(RENEW_AFTER);
    assert.deepEqual(told(), ["lost expired"]);
    assert.deepEqual(renewedKeys(), []);
  });
});

describe("a process that stood still", () => {
  test("is told, and leases that are not certain any more are not renewed", async () => {
    const lost = begin("car1");
    await clock.stall(LEASE * 2);
    assert.deepEqual(told(), ["stalled", "lost expired"]);
    const [stall] = events;
    assert.ok(stall?.type === "stalled");
    assert.deepEqual(stall.keys, ["car1"]);
    assert.equal(stall.lateMs, LEASE * 2 - RENEW_AFTER);
    assert.ok(lost.lost);
    assert.deepEqual(renewedKeys(), []);
  });

  test("renews what is still certain", async () => {
    const held = begin("car1");
    await clock.stall(RENEW_AFTER + 600);
    assert.deepEqual(told(), ["stalled"]);
    assert.deepEqual(renewedKeys(), [["car1"]]);
    held.check();
  });

  test("is not told when a timer is late as timers are", async () => {
    begin("car1");
    await clock.stall(RENEW_AFTER + 199);
    assert.deepEqual(events, []);
  });
});

describe("a handler's time", () => {
  test("ends with its signal, after which its lease is not renewed", async () => {
    keeper = newKeeper(1_500);
    const held = begin("car1");
    await clock.pass(1_499);
    assert.equal(held.signal.aborted, false, "the handler may go on");
    await clock.pass(1);
    assert.ok(held.timedOut && held.signal.reason instanceof HandlerTimeout);
    assert.deepEqual(renewedKeys(), [["car1"]]);
    // Renewed once, at a third, so it lasts until then and not longer.
    await clock.pass(LEASE);
    assert.ok(held.lost);
    assert.deepEqual(renewedKeys(), [["car1"]]);
  });

  test("is not renewed either for progress that it reported just before", async () => {
    keeper = newKeeper(500);
    const held = begin("car1");
    await clock.pass(400);
    held.progress(0.5);
    await clock.pass(LEASE);
    assert.deepEqual(renewedKeys(), []);
    assert.deepEqual(told(), ["lost expired"]);
  });

  test("ends in time although the timer waits for something later", async () => {
    keeper = newKeeper(100);
    begin("car1");
    // Its time is up and it ignores that; what is next is its deadline.
    await clock.pass(2_000);
    const held = begin("car2");
    await clock.pass(100);
    assert.ok(held.timedOut);
  });

  test("is not the reason when the worker stopped before", async () => {
    keeper = newKeeper(100);
    const held = begin("car1");
    await clock.pass(50);
    held.abort(new Stopping());
    await clock.pass(100);
    assert.equal(held.timedOut, false, "the handler has not run into its limit");
    assert.ok(held.signal.reason instanceof Stopping);
  });
});

describe("progress", () => {
  test("waits for more, and goes out once with the last word", async () => {
    const held = begin("car1");
    for (const share of [0.1, 0.2, 0.3]) held.progress(share);
    await clock.pass(199);
    assert.equal(engine.renewals.length, 0);
    await clock.pass(1);
    assert.deepEqual(
      engine.renewals.map((batch) => batch.map(({ progress }) => progress)),
      [[0.3]],
    );
    held.progress(0.4);
    await clock.pass(200);
    assert.equal(engine.renewals.length, 2);
  });

  test("is a renewal too: the next one is due a third later", async () => {
    const held = begin("car1");
    await clock.pass(700);
    held.progress(0.5);
    await clock.pass(200 + RENEW_AFTER - 1);
    assert.equal(engine.renewals.length, 1);
    await clock.pass(1);
    assert.equal(engine.renewals.length, 2);
  });

  test("of a run that has ended goes nowhere", async () => {
    const held = begin("car1");
    keeper.remove(held);
    held.progress(0.5);
    await clock.pass(LEASE);
    assert.equal(engine.renewals.length, 0);
  });
});

describe("a cancelled item", () => {
  test("is told to its handler once, by a renewal", async () => {
    engine.onRenew = () => Promise.resolve([{ ok: true, since: instant(clock), cancelRequested: true }]);
    const held = begin("car1");
    await clock.pass(RENEW_AFTER * 3);
    assert.ok(held.cancelled && held.signal.reason instanceof Cancelled);
    assert.deepEqual(told(), ["cancelling"]);
  });
});

describe("a keeper that was stopped", () => {
  test("renews nothing more, whatever the handlers that are left do", async () => {
    const reply = Promise.withResolvers<readonly RenewResult[]>();
    engine.onRenew = () => reply.promise;
    const held = begin("car1");
    await clock.pass(RENEW_AFTER);
    keeper.stop();
    reply.resolve([{ ok: true, since: instant(clock), cancelRequested: false }]);
    await clock.pass(0);
    held.progress(0.5);
    await clock.pass(LEASE * 2);
    assert.equal(engine.renewals.length, 1);
    assert.equal(clock.timers, 0);
  });
});
