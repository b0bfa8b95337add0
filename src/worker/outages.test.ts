import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import { BatonError } from "../domain/errors.ts";
import { describeWarning, type WorkerEvent } from "./events.ts";
import { Outages } from "./outages.ts";

const AWAY = new BatonError("STORE_UNAVAILABLE", "No connection.");
const FULL = new BatonError("STORE_FULL", "The disk is full.");

let clock: ManualClock;
let outages: Outages;
let events: WorkerEvent[];

beforeEach(() => {
  clock = new ManualClock();
  events = [];
  outages = new Outages(clock, (event) => events.push(event));
});

function told(): string[] {
  return events.map(({ type }) => type);
}

describe("an outage", () => {
  test("of ten seconds with thousands of failed calls is told when it begins and when it is over", async () => {
    for (let step = 0; step < 99; step += 1) {
      for (let call = 0; call < 23; call += 1)
        outages.failed(["settling items", "renewing leases"][call % 2] ?? "", AWAY);
      await clock.pass(100);
    }
    outages.worked("asking for work");
    await clock.pass(5_000);
    assert.deepEqual(events.map(describeWarning), [
      "Trouble settling items: No connection. Trying again.",
      "The trouble settling items is over. It lasted 9.9 s (2277 failure(s)). Work goes on.",
    ]);
  });

  test("that lasts is told again, less and less often, with a count", async () => {
    for (let second = 0; second < 3_600; second += 1) {
      outages.failed("asking for work", AWAY);
      await clock.pass(1_000);
    }
    assert.deepEqual(
      events.map((event) => (event.type === "trouble" ? event.forMs / 1_000 : event.type)),
      [0, 10, 30, 70, 150, 310, 630, 1_230, 1_830, 2_430, 3_030],
    );
    assert.equal(
      describeWarning(events[1] ?? assert.fail()),
      "Still trouble after 10.0 s (11 failures), the last asking for work: No connection.",
    );
  });

  test("of a store that refuses nothing and says nothing is told when a call has waited for three seconds", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const call = outages.answered("settling items", promise);
    await clock.pass(2_900);
    assert.deepEqual(told(), []);
    await clock.pass(200);
    assert.deepEqual(events.map(describeWarning), [
      "Trouble settling items: The store has not answered for 3 s. Trying again.",
    ]);
    resolve("settled");
    assert.equal(await call, "settled");
    outages.worked("settling items");
    await clock.pass(2_000);
    assert.deepEqual(told(), ["trouble", "recovered"]);
  });

  test("is not told of a call whose answer waits for a process that stood still", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const call = outages.answered("settling items", promise);
    await clock.stall(10_000);
    resolve("settled");
    await call;
    await clock.pass(10_000);
    assert.deepEqual(told(), []);
  });

  test("is not over when one call gets through", async () => {
    outages.failed("asking for work", AWAY);
    for (let second = 0; second < 5; second += 1) {
      outages.worked("asking for work");
      await clock.pass(500);
      outages.failed("asking for work", AWAY);
      await clock.pass(500);
    }
    assert.deepEqual(told(), ["trouble"]);
  });

  test("that comes back again and again must stay well for longer and longer to be over", async () => {
    for (let second = 0; second < 600; second += 2) {
      outages.failed("asking for work", AWAY);
      outages.worked("asking for work");
      await clock.pass(2_000);
    }
    assert.ok(events.length < 15, `${events.length} events`);
  });

  test("wakes those who pause before their next try", async () => {
    let woken = 0;
    outages.failed("settling items", AWAY);
    for (let waiting = 0; waiting < 64; waiting += 1) void outages.pause(60_000).then(() => (woken += 1));
    await clock.pass(500);
    assert.equal(woken, 0);
    outages.worked("renewing leases");
    await clock.pass(0);
    assert.equal(woken, 64);
    outages.close();
    assert.equal(clock.timers, 0);
  });
});

describe("a connection that is closed", () => {
  test("tells nothing more: no end of an outage, no new one, and no reminder", async () => {
    outages.failed("settling items", AWAY);
    outages.close();
    outages.worked("settling items");
    await clock.pass(30_000);
    outages.failed("settling items", AWAY);
    outages.failed("giving an item back", FULL);
    outages.worked("giving an item back");
    await clock.pass(30_000);
    assert.deepEqual(told(), ["trouble"]);
    assert.equal(clock.timers, 0);
  });
});

describe("another failure than that of the store", () => {
  test("is over when the same thing works, whatever else does", async () => {
    outages.failed("settling items", FULL);
    outages.worked("asking for work");
    await clock.pass(5_000);
    assert.deepEqual(told(), ["trouble"]);
    outages.worked("settling items");
    await clock.pass(5_000);
    assert.deepEqual(told(), ["trouble", "recovered"]);
  });

  test("that was not tried again is forgotten, and news when it happens again", async () => {
    outages.failed("giving an item back", FULL);
    await clock.pass(600_000);
    outages.failed("giving an item back", FULL);
    assert.deepEqual(told(), ["trouble", "trouble"]);
    assert.deepEqual(
      events.map((event) => (event.type === "trouble" ? event.failures : 0)),
      [1, 1],
    );
  });
});
