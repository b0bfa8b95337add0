import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ManualClock } from "../../../test/manual-clock.ts";
import { never } from "../../../test/scripted-engine.ts";
import { type Instant, instant } from "../../domain/clock.ts";
import { Heartbeat } from "./heartbeat.ts";

const LEASE = 3_000;
const RENEW_AFTER = 1_000;
/** The lease without its margin of half a second. */
const USABLE = 2_500;

let clock: ManualClock;
let signs: number;
let told: string[];
let renew: () => Promise<Instant | undefined>;
let wanted: boolean;

beforeEach(() => {
  clock = new ManualClock();
  signs = 0;
  told = [];
  wanted = true;
  renew = () => Promise.resolve(instant(clock));
});

function begin(since: Instant = instant(clock)): Heartbeat {
  const life = {
    leaseMs: LEASE,
    since,
    renew: () => {
      signs += 1;
      return renew();
    },
  };
  return new Heartbeat(life, clock, {
    lost: (loss) => told.push(`lost ${loss}`),
    stalled: ({ lateMs }) => told.push(`stalled ${lateMs}`),
    trouble: () => told.push("trouble"),
    wanted: () => wanted,
  });
}

describe("a heartbeat", () => {
  test("beats at a third of the lease, with one timer", async () => {
    const heart = begin();
    await clock.pass(RENEW_AFTER - 1);
    assert.equal(signs, 0);
    await clock.pass(1);
    assert.equal(signs, 1);
    await clock.pass(LEASE * 10);
    assert.equal(signs, 31);
    assert.equal(clock.timers, 1);
    assert.ok(heart.check());
    heart.stop();
    assert.deepEqual({ told, timers: clock.timers, left: heart.leftMs }, { told: [], timers: 0, left: 0 });
  });

  test("ends at its local deadline although a sign of life is answered before the timer that is late", async () => {
    const reply = Promise.withResolvers<Instant | undefined>();
    renew = () => reply.promise;
    const heart = begin();
    await clock.pass(RENEW_AFTER);
    reply.resolve(instant(clock));
    await clock.stall(USABLE - RENEW_AFTER + 10);
    assert.equal(heart.check(), false, "the session cannot be relied on");
    assert.deepEqual(told, ["lost expired"]);
    // A timer that is left behind would keep the process alive.
    heart.renewNow();
    assert.equal(clock.timers, 0);
  });

  test("ends at its local deadline although the store is silent, once", async () => {
    const heart = begin();
    renew = never;
    await clock.pass(USABLE - 1);
    assert.ok(heart.check());
    await clock.pass(LEASE);
    assert.equal(heart.check(), false, "the session cannot be relied on");
    assert.deepEqual(told, ["lost expired"]);
    assert.ok(signs >= 2, "a second sign of life goes out when the reply to the first is late");
  });

  test("tries again soon after trouble, and lives when the store answers in time", async () => {
    const heart = begin();
    renew = () => Promise.reject(new Error("away"));
    await clock.pass(RENEW_AFTER + 600);
    assert.ok(signs >= 3);
    renew = () => Promise.resolve(instant(clock));
    await clock.pass(LEASE * 2);
    assert.ok(heart.check());
    assert.ok(!told.includes("lost expired"));
  });

  test("ends at once when the store says so", async () => {
    const heart = begin();
    renew = () => Promise.resolve(undefined);
    await clock.pass(RENEW_AFTER);
    assert.deepEqual(told, ["lost ended"]);
    assert.equal(heart.leftMs, 0);
  });

  test("does not go back when an old reply overtakes a newer one", async () => {
    const heart = begin();
    await clock.pass(RENEW_AFTER);
    const before = heart.leftMs;
    renew = () => Promise.resolve({ monotonic: 0, wall: 0 });
    await clock.pass(RENEW_AFTER);
    assert.equal(heart.leftMs, before - RENEW_AFTER);
  });

  test("counts from before it was asked for, and by the clock that says more", async () => {
    const since = instant(clock);
    await clock.stall(USABLE - 100);
    const heart = begin(since);
    assert.equal(heart.leftMs, 100);
    clock.stepWall(100);
    assert.equal(heart.check(), false, "the session cannot be relied on");
    assert.deepEqual(told, ["lost expired"]);
  });

  test("tells of a stall, and does not renew what is not certain any more", async () => {
    begin();
    await clock.stall(LEASE);
    assert.deepEqual(told, [`stalled ${LEASE - RENEW_AFTER}`, "lost expired"]);
    assert.equal(signs, 0);
  });

  test("stops when nobody wants it any more", async () => {
    begin();
    wanted = false;
    await clock.pass(LEASE * 2);
    assert.deepEqual({ signs, told, timers: clock.timers }, { signs: 0, told: [], timers: 0 });
  });
});
