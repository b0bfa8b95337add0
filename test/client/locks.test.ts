/** `baton.lock`, `baton.withLock` and sessions, as a program sees them. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { BatonError, type HeldLock, LockBusy, LockLost, OutcomeUnknown, SessionLost } from "../../src/index.ts";
import { aftermath } from "../manual-clock.ts";
import { never } from "../scripted-engine.ts";
import { type Connected, LEASE_MS, LockStage, namesOf, untilAborted, USABLE_MS } from "./lock-stage.ts";

const LEASE = { lease: LEASE_MS };
/** A try that gets no answer ends after this: its time, and a moment for what is on its way. */
const UNANSWERED_MS = 6_000;
const TRY = { ...LEASE, wait: "0s" };

let stage: LockStage;
let ada: Connected;
let bob: Connected;

beforeEach(() => {
  stage = new LockStage();
  ada = stage.connect();
  bob = stage.connect();
});

afterEach(async () => {
  await Promise.all([ada.baton.close({ grace: 0 }), bob.baton.close({ grace: 0 })]);
});

async function isFree(name: string): Promise<boolean> {
  try {
    await (await bob.baton.lock(name, TRY)).release();
    return true;
  } catch (error) {
    if (error instanceof LockBusy) return false;
    throw error;
  }
}

describe("a lock", () => {
  test("is refused to others, who are told who has it and since when", async () => {
    const lock = await ada.baton.lock("a", { ...LEASE, data: "10.0.0.5" });
    await assert.rejects(bob.baton.lock("a", TRY), (error: unknown) => {
      assert.ok(error instanceof LockBusy);
      const [holder] = error.holders;
      assert.deepEqual(
        { code: error.code, why: error.why, fence: holder?.fence, data: holder?.data },
        { code: "LOCK_BUSY", why: "held", fence: lock.fence, data: "10.0.0.5" },
      );
      assert.match(error.message, /^Lock "a" was not acquired: "[^"]+" has held it since 20/);
      return true;
    });
    assert.equal(await lock.release(), true, "the lock was held until its release");
    assert.equal(await lock.release(), false, "it was let go of, or lost, before");
    assert.throws(() => lock.check(), LockLost);
    assert.ok(await isFree("a"));
  });

  test("is waited for: for a time, for ever, or until a signal", async () => {
    const lock = await ada.baton.lock("a", LEASE);
    const forATime = bob.baton.lock("a", { ...LEASE, wait: "1s" });
    const giveUp = new AbortController();
    const untilSignal = bob.baton.lock("a", { ...LEASE, signal: giveUp.signal });
    const forEver = bob.baton.lock("a", LEASE);
    const refused = assert.rejects(forATime, LockBusy);
    await stage.clock.pass(1_000);
    await refused;
    giveUp.abort();
    await assert.rejects(untilSignal, { name: "AbortError" });
    await stage.clock.pass(LEASE_MS * 5);
    lock.check();
    await lock.release();
    const next = await forEver;
    assert.ok(next.fence > lock.fence);
    await assert.rejects(bob.baton.lock("a", { signal: AbortSignal.abort() }), { name: "AbortError" });
  });

  test("that came together with the signal is let go: whoever gave up may not be there any more", async () => {
    const giveUp = new AbortController();
    const { locks } = ada;
    locks.onAcquire = async (request) => {
      locks.onAcquire = undefined;
      const result = await locks.acquire(request);
      giveUp.abort();
      return result;
    };
    await assert.rejects(ada.baton.lock("a", { ...LEASE, signal: giveUp.signal }), { name: "AbortError" });
    assert.ok(await isFree("a"));
  });

  test("that came when its session was not certain any more is let go at once", async () => {
    const { locks } = ada;
    locks.onRenew = never;
    locks.onAcquire = async (request) => {
      locks.onAcquire = undefined;
      const result = await locks.acquire(request);
      await stage.clock.pass(USABLE_MS);
      return result;
    };
    await assert.rejects(ada.baton.lock("a", TRY), { code: "SESSION_LOST" });
    assert.ok(await isFree("a"), "the store has the session for another moment, and not the lock");
  });

  test("that comes when the store answers too late is let go at once", async () => {
    const { locks } = ada;
    const answering = Promise.withResolvers<void>();
    locks.onAcquire = async (request) => {
      locks.onAcquire = undefined;
      await answering.promise;
      return await locks.acquire(request);
    };
    const unanswered = assert.rejects(ada.baton.lock("a", TRY), { code: "STORE_UNAVAILABLE" });
    await stage.clock.pass(UNANSWERED_MS);
    await unanswered;
    answering.resolve();
    await aftermath();
    assert.ok(await isFree("a"));
  });

  test("whose grant nobody heard of is not kept by signs of life", async () => {
    const { locks } = ada;
    locks.onAcquire = async (request) => {
      locks.onAcquire = undefined;
      await locks.acquire(request);
      throw new OutcomeUnknown("acquiring");
    };
    await assert.rejects(ada.baton.lock("a", TRY), { code: "OUTCOME_UNKNOWN" });
    await aftermath();
    assert.ok(await isFree("a"), "the session that may have it is closed");
  });

  test("is released at the end of a scope, also when the store fails at first", async () => {
    const { locks, events } = ada;
    {
      await using lock = await ada.baton.lock("a", LEASE);
      lock.check();
      let fails = 2;
      locks.onRelease = async (request) => {
        fails -= 1;
        if (fails >= 0) throw new BatonError("STORE_UNAVAILABLE", "no");
        locks.onRelease = undefined;
        return await locks.release(request);
      };
      void stage.clock.pass(1_000);
    }
    assert.deepEqual(namesOf(events), ["locked", "trouble", "unlocked"]);
    assert.ok(await isFree("a"));
  });

  test("has several holders if it has several slots", async () => {
    const slots = { ...TRY, slots: 2 };
    const first = await ada.baton.lock("a", slots);
    await bob.baton.lock("a", slots);
    await assert.rejects(ada.baton.lock("a", slots), LockBusy);
    await first.release();
    await ada.baton.lock("a", slots);
  });

  test("that its holder left behind is kept from others for its delay after loss", async () => {
    await ada.baton.lock("a", { ...LEASE, delayAfterLoss: "5s" });
    ada.locks.onRenew = never;
    const next = bob.baton.lock("a", { ...LEASE, delayAfterLoss: "5s" });
    let got = false;
    void next.then(() => (got = true));
    await stage.clock.pass(LEASE_MS + 4_000);
    assert.equal(got, false, "nobody gets the lock that is held");
    await stage.clock.pass(LEASE_MS + 2_000);
    await next;
  });

  test("wants sensible options", async () => {
    const wrong = [
      { lease: "1ms" },
      { wait: "soon" },
      { slots: 0 },
      { delayAfterLoss: -1 },
      { data: "x".repeat(5_000) },
    ];
    for (const options of wrong) await assert.rejects(ada.baton.lock("a", options), { code: "INVALID_INPUT" });
    await assert.rejects(ada.baton.lock(""), { code: "INVALID_INPUT" });
    assert.equal(ada.locks.opened.length, 0);
  });
});

describe("the session of a connection's locks", () => {
  test("is one for all of the same lease, with one sign of life", async () => {
    await Promise.all(["a", "b", "c"].map((name) => ada.baton.lock(name, LEASE)));
    await ada.baton.lock("d", { lease: "10s" });
    assert.deepEqual(
      ada.locks.opened.map(({ leaseMs }) => leaseMs),
      [LEASE_MS, 10_000],
    );
    await stage.clock.pass(LEASE_MS);
    assert.equal(ada.locks.renewals, 3);
  });

  test("is closed when nothing has hung on it for a while, and opened anew", async () => {
    await (await ada.baton.lock("a", LEASE)).release();
    await stage.clock.pass(LEASE_MS);
    assert.deepEqual({ renewals: ada.locks.renewals, closed: ada.locks.closed }, { renewals: 1, closed: 1 });
    await ada.baton.lock("a", LEASE);
    assert.equal(ada.locks.opened.length, 2);
  });

  test("that is lost is one event, which fires every signal under it", async () => {
    const held = await Promise.all(["a", "b"].map((name) => ada.baton.lock(name, LEASE)));
    const signals = held.map(({ signal }) => signal);
    ada.locks.onRenew = never;
    await stage.clock.pass(USABLE_MS - 1);
    for (const lock of held) lock.check();
    await stage.clock.pass(1);
    for (const signal of signals) assert.ok(signal.reason instanceof LockLost);
    assert.deepEqual(namesOf(ada.events), ["locked", "locked", "session-lost expired"]);
    assert.equal(await isFree("a"), false, "the store still has it: the local deadline comes first");
    await stage.clock.pass(LEASE_MS - USABLE_MS);
    assert.ok(await isFree("a"));
    assert.deepEqual(await Promise.all(held.map((lock) => lock.release())), [false, false]);
  });

  test("after a stall: checks are made by the clock, before any timer could fire", async () => {
    const lock = await ada.baton.lock("a", LEASE);
    const { signal } = lock;
    stage.clock.stepWall(LEASE_MS);
    assert.equal(lock.leftMs, 0);
    assert.throws(() => lock.check(), LockLost);
    assert.ok(signal.aborted);
    assert.deepEqual(namesOf(ada.events), ["locked", "session-lost expired"]);
  });

  test("a stall is told, with its locks", async () => {
    await ada.baton.lock("a", LEASE);
    await stage.clock.stall(LEASE_MS * 2);
    const stalled = ada.events.find(({ type }) => type === "session-stalled");
    assert.deepEqual(stalled?.type === "session-stalled" ? stalled.locks : undefined, ["a"]);
  });

  test("a wait goes on under another session when its own is lost", async () => {
    const lock = await bob.baton.lock("a", LEASE);
    const waiting = ada.baton.lock("a", LEASE);
    await aftermath();
    ada.locks.onRenew = () => Promise.resolve(undefined);
    await stage.clock.pass(LEASE_MS / 3);
    ada.locks.onRenew = undefined;
    await stage.clock.pass(LEASE_MS);
    assert.equal(ada.locks.opened.length, 2);
    await lock.release();
    (await waiting).check();
  });

  test("a wait that goes on under another session ends when its own time is up", async () => {
    await bob.baton.lock("a", LEASE);
    let isRefused = false;
    const refused = assert.rejects(ada.baton.lock("a", { ...LEASE, wait: 2 * LEASE_MS }), LockBusy);
    void refused.then(() => (isRefused = true));
    await aftermath();
    ada.locks.onRenew = () => Promise.resolve(undefined);
    await stage.clock.pass(LEASE_MS / 3);
    ada.locks.onRenew = undefined;
    await stage.clock.pass(2 * LEASE_MS - LEASE_MS / 3);
    assert.equal(ada.locks.opened.length, 2);
    assert.ok(isRefused, "the wait does not begin anew");
    await refused;
  });
});

describe("withLock", () => {
  test("gives what the function returned, and lets go also when it throws", async () => {
    const result = await ada.baton.withLock("a", async (lock) => `fence ${lock.fence > 0}`, LEASE);
    assert.equal(result, "fence true");
    assert.ok(await isFree("a"));
    const failing = ada.baton.withLock("a", () => Promise.reject(new Error("mine")), LEASE);
    await assert.rejects(failing, { message: "mine" });
    assert.ok(await isFree("a"));
  });

  test("rejects when the lock was lost before the function had ended", async () => {
    const ended = Promise.withResolvers<string>();
    const running = ada.baton.withLock("a", () => ended.promise, LEASE);
    const refused = assert.rejects(running, LockLost);
    await aftermath();
    ada.locks.onRenew = never;
    await stage.clock.pass(LEASE_MS);
    ended.resolve("too late");
    await refused;
  });

  test("is waited for by close, which fires its signal and frees the lock only when it has ended", async () => {
    const ended = Promise.withResolvers<string>();
    const begun = Promise.withResolvers<HeldLock>();
    const running = ada.baton.withLock(
      "a",
      (lock) => {
        begun.resolve(lock);
        return ended.promise;
      },
      LEASE,
    );
    const lock = await begun.promise;
    const closing = ada.baton.close();
    await aftermath();
    assert.throws(() => lock.check(), { code: "STOPPING" });
    assert.equal(await isFree("a"), false, "the lock is still held");
    ended.resolve("done");
    assert.equal(await running, "done");
    await closing;
    assert.ok(await isFree("a"));
  });

  test("keeps its lock from others when it outlasts the grace of close, until the lease has run out", async () => {
    const begun = Promise.withResolvers<void>();
    void ada.baton.withLock(
      "a",
      () => {
        begun.resolve();
        return never();
      },
      LEASE,
    );
    await begun.promise;
    const closing = ada.baton.close({ grace: "1s" });
    await stage.clock.pass(1_000);
    await closing;
    assert.equal(await isFree("a"), false, "the lock is still held");
    await stage.clock.pass(LEASE_MS);
    assert.ok(await isFree("a"));
  });
});

describe("a session of one's own", () => {
  test("has an owner, frees everything when it is closed, and fires its signal", async () => {
    const session = await ada.baton.session({ ...LEASE, owner: "deploy 17" });
    const lock = await session.lock("a");
    const [report] = await bob.baton.locks();
    assert.equal(report?.holders[0]?.owner, "deploy 17");
    const { signal } = lock;
    await session.close();
    assert.ok(signal.reason instanceof LockLost);
    assert.ok(session.signal.reason instanceof SessionLost);
    assert.ok(await isFree("a"));
    await assert.rejects(session.lock("a"), SessionLost);
  });

  test("is closed once: a second call can only shorten the grace", async () => {
    const session = await ada.baton.session(LEASE);
    void session.withLock("a", never).catch(() => undefined);
    await aftermath();
    let isClosed = false;
    const closing = session.close({ grace: "1h" }).then(() => (isClosed = true));
    const again = [session.close({ grace: 500 }), session.close({ grace: "2h" })];
    await stage.clock.pass(499);
    assert.equal(isClosed, false);
    await stage.clock.pass(1);
    await Promise.all([closing, ...again]);
  });

  test("is kept though nothing hangs on it, and ends a wait when it is lost", async () => {
    await using session = await ada.baton.session(LEASE);
    await stage.clock.pass(LEASE_MS * 3);
    assert.equal(ada.locks.closed, 0);
    await bob.baton.lock("a", LEASE);
    const refused = assert.rejects(session.lock("a"), SessionLost);
    ada.locks.onRenew = () => Promise.resolve(undefined);
    await stage.clock.pass(LEASE_MS);
    await refused;
  });
});

describe("closing a connection", () => {
  test("frees its locks at once and ends its waits", async () => {
    const lock = await ada.baton.lock("a", LEASE);
    await bob.baton.lock("b", LEASE);
    const refused = assert.rejects(ada.baton.lock("b", LEASE), { code: "CLOSED" });
    await aftermath();
    const aborted = assert.rejects(untilAborted(lock.signal), LockLost);
    await Promise.all([ada.baton.close(), stage.clock.pass(LEASE_MS)]);
    await refused;
    await aborted;
    assert.ok(await isFree("a"));
    await assert.rejects(ada.baton.lock("a"), { code: "CLOSED" });
  });
});
