/** Elections, as candidates and lookers-on see them. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { LockLost } from "../../src/index.ts";
import { aftermath } from "../manual-clock.ts";
import { never } from "../scripted-engine.ts";
import { type Connected, LEASE_MS, LockStage, namesOf, untilAborted } from "./lock-stage.ts";

const LEASE = { lease: LEASE_MS };

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

describe("a candidate", () => {
  test("leads from its election until it resigns; then the next one does", async () => {
    const first = ada.baton.elect("boss", { ...LEASE, data: "ada" });
    const second = bob.baton.elect("boss", { ...LEASE, data: "bob" });
    assert.equal(await first.leader(), undefined);
    const term = await first.campaign();
    assert.equal(await first.campaign(), term, "a leader is elected already");
    const next = second.campaign();
    await aftermath();
    assert.deepEqual([first.leading, second.leading], [true, false]);
    const leader = await second.leader();
    assert.deepEqual(
      { data: leader?.data, fence: leader?.fence, me: leader?.me },
      { data: "ada", fence: term.fence, me: false },
    );
    await first.resign();
    const following = await next;
    assert.ok(following.fence > term.fence);
    assert.deepEqual([first.leading, second.leading], [false, true]);
    assert.equal((await second.leader())?.me, true, "the second candidate leads");
    assert.deepEqual(namesOf(ada.events), ["locked", "elected", "unlocked", "deposed resigned"]);
  });

  test("that resigns before it is elected is none any more", async () => {
    await bob.baton.elect("boss", LEASE).campaign();
    const election = ada.baton.elect("boss", LEASE);
    const refused = assert.rejects(election.campaign(), { name: "AbortError" });
    await aftermath();
    await election.resign();
    await refused;
    assert.equal((await bob.baton.locks())[0]?.waiting, 0);
  });

  test("that is stopped hands over, and is not elected again", async () => {
    const stop = new AbortController();
    const first = ada.baton.elect("boss", { ...LEASE, signal: stop.signal });
    await first.campaign();
    const next = bob.baton.elect("boss", LEASE).campaign();
    await aftermath();
    stop.abort();
    await next;
    await first.stop();
    await assert.rejects(first.campaign(), { name: "AbortError" });
  });
});

describe("lead", () => {
  test("runs its function in each term, and campaigns again after a rest", async () => {
    const election = ada.baton.elect("boss", { ...LEASE, rest: "1s" });
    const fences: number[] = [];
    const leading = election.lead((term) => {
      fences.push(term.fence);
      if (fences.length === 2) throw new Error("tired");
    });
    await stage.clock.pass(2_500);
    assert.equal(fences.length, 3);
    assert.ok((fences[0] ?? 0) < (fences[1] ?? 0) && (fences[1] ?? 0) < (fences[2] ?? 0));
    assert.ok(ada.events.some((event) => event.type === "trouble" && event.doing === "leading boss"));
    await election.stop();
    await leading;
    assert.deepEqual(await ada.baton.locks(), []);
  });

  test("a lead that is lost fires the term's signal, and is won back without a rest", async () => {
    const election = ada.baton.elect("boss", { ...LEASE, rest: "1h" });
    const reasons: unknown[] = [];
    const leading = election.lead(async (term) => {
      await untilAborted(term.signal).catch((reason: unknown) => reasons.push(reason));
    });
    await aftermath();
    ada.locks.onRenew = never;
    await stage.clock.pass(LEASE_MS);
    assert.ok(reasons[0] instanceof LockLost);
    ada.locks.onRenew = undefined;
    await stage.clock.pass(LEASE_MS);
    assert.ok(election.leading);
    assert.deepEqual(
      namesOf(ada.events).filter((name) => !name.startsWith("lock")),
      ["elected", "deposed lost", "session-lost expired", "elected"],
    );
    await election.stop();
    await leading;
  });

  test("stop fires the signal, and the lead passes on only when the function has ended", async () => {
    const ended = Promise.withResolvers<void>();
    const election = ada.baton.elect("boss", LEASE);
    const leading = election.lead(async (term) => {
      await untilAborted(term.signal).catch(() => ended.promise);
    });
    const next = bob.baton.elect("boss", LEASE).campaign();
    await aftermath();
    const stopping = election.stop();
    await stage.clock.pass(LEASE_MS * 2);
    assert.equal((await election.leader())?.me, true, "this candidate leads");
    ended.resolve();
    await stopping;
    await leading;
    await next;
  });

  test("a connection that closes shortens the grace of a stop, and does not lengthen it", async () => {
    const work = Promise.withResolvers<void>();
    const election = ada.baton.elect("boss", LEASE);
    const leading = election.lead(() => work.promise);
    await aftermath();
    const ended: string[] = [];
    const stopping = [
      election.stop({ grace: "1h" }).then(() => ended.push("the stop")),
      ada.baton.close({ grace: 500 }).then(() => ended.push("the close")),
      election.stop({ grace: "2h" }),
    ];
    await stage.clock.pass(499);
    assert.deepEqual(ended, []);
    // What outlasts its election has the same time again until its session closes.
    await stage.clock.pass(501);
    await Promise.all(stopping);
    assert.deepEqual(ended, ["the stop", "the close"]);
    work.resolve();
    await leading;
  });

  test("its function may resign", async () => {
    const election = ada.baton.elect("boss", { ...LEASE, rest: "1h" });
    const leading = election.lead(async (term) => {
      await election.resign();
      assert.ok(term.signal.aborted);
    });
    await aftermath();
    assert.equal(await election.leader(), undefined);
    await assert.rejects(
      election.lead(() => undefined),
      { code: "INVALID_INPUT" },
    );
    await election.stop();
    await leading;
  });
});

describe("observe", () => {
  test("tells who leads, now and after every change, until stop", async () => {
    const watcher = bob.baton.elect("boss", LEASE);
    const seen: unknown[] = [];
    const watching = (async () => {
      for await (const leader of watcher.observe()) seen.push(leader?.data);
    })();
    await aftermath();
    const election = ada.baton.elect("boss", { ...LEASE, data: "ada" });
    await election.campaign();
    await aftermath();
    // More who wait are no change of the lead.
    const giveUp = new AbortController();
    const refused = assert.rejects(bob.baton.lock("boss", { ...LEASE, signal: giveUp.signal }), { name: "AbortError" });
    await aftermath();
    giveUp.abort();
    await refused;
    await election.resign();
    await aftermath();
    assert.deepEqual(seen, [undefined, "ada", undefined]);
    await watcher.stop();
    await watching;
  });

  test("tells of a leader that vanished when its lease has run out", async () => {
    await ada.baton.elect("boss", { ...LEASE, data: "ada" }).campaign();
    const watcher = bob.baton.elect("boss", LEASE);
    const end = new AbortController();
    const seen: unknown[] = [];
    const watching = (async () => {
      for await (const leader of watcher.observe({ signal: end.signal })) seen.push(leader?.data);
    })();
    await aftermath();
    ada.locks.onRenew = never;
    await stage.clock.pass(LEASE_MS * 3);
    assert.deepEqual(seen, ["ada", undefined]);
    end.abort();
    await watching;
  });
});
