import { setImmediate as nextTurn } from "node:timers/promises";
import type { Grant } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atLeast, atMost, equal, ok, present, refusedWith } from "../expect.ts";
import { textOf } from "../scene.ts";

/** Stores may count whole milliseconds. */
const ROUNDING_MS = 5;

export const honest: readonly ConformanceCase[] = casesOf("G11", {
  "an item whose holder vanished is delivered again, and says so": async (scene) => {
    await scene.submit("k", { id: "item" });
    for (const attempt of [1, 2, 3]) {
      const { item } = await scene.claimOne({ leaseMs: scene.leaseMs });
      equal([item.id, item.attempt], ["item", attempt], "The item and its attempt");
    }
    const last = await scene.claimOne();
    equal(last.item.attempt, 4, "The attempt");
    equal((await scene.find("item"))?.attempt, 4, "The attempt, as reported");
  },

  "every retry counts": async (scene) => {
    await scene.submit("k", { id: "item" });
    for (const [index, place] of (["keep", "yield", "keep"] as const).entries()) {
      const grant = await scene.claimOne();
      equal(grant.item.attempt, index + 1, "The attempt");
      await scene.retry(grant, 0, place);
      equal((await scene.find("item"))?.attempt, index + 1, "The attempts so far");
    }
    equal((await scene.claimOne()).item.attempt, 4, "The attempt");
  },

  "attempts are counted item by item": async (scene) => {
    await scene.submit("k", { text: "first" });
    await scene.submit("k", { text: "second" });
    await scene.retry(await scene.claimOne());
    const first = await scene.claimOne();
    equal([textOf(first), first.item.attempt], ["first", 2], "The first item");
    await scene.done(first);
    const second = await scene.claimOne();
    equal([textOf(second), second.item.attempt], ["second", 1], "The second item");
  },

  "a lease counts from before it was made": async (scene) => {
    await scene.submit("k");
    const { lease } = await scene.claimOne({ leaseMs: scene.leaseMs });
    const now = { wall: scene.clock.wall(), monotonic: scene.clock.monotonic() };
    atMost(lease.since.monotonic, now.monotonic, "The beginning of the lease, by the monotonic clock");
    atMost(lease.since.wall, now.wall, "The beginning of the lease, by the wall clock");
    const next = await scene.claimOne();
    const passedMs = next.lease.since.monotonic - lease.since.monotonic;
    atLeast(passedMs, scene.leaseMs - ROUNDING_MS, "Milliseconds from one lease to the next");
  },

  "a renewal counts from before it was made": async (scene) => {
    await scene.submit("k");
    const { lease } = await scene.claimOne();
    const before = scene.clock.monotonic();
    const renewed = await scene.renew(lease, { leaseMs: scene.leaseMs });
    ok(renewed.ok, "A current lease can be renewed");
    atMost(renewed.since.monotonic, scene.clock.monotonic(), "The beginning of the renewed lease");
    atLeast(renewed.since.monotonic, before - ROUNDING_MS, "The beginning of the renewed lease");
    const next = await scene.claimOne();
    const passedMs = next.lease.since.monotonic - renewed.since.monotonic;
    atLeast(passedMs, scene.leaseMs - ROUNDING_MS, "Milliseconds from the renewal to the next lease");
  },

  "a hold counts from before it was made": async (scene) => {
    const lease = present(await scene.hold("k"), "An idle key can be held");
    atMost(lease.since.monotonic, scene.clock.monotonic(), "The beginning of the hold, by the monotonic clock");
    atMost(lease.since.wall, scene.clock.wall(), "The beginning of the hold, by the wall clock");
  },

  "a claim that is given up takes no lease along": async (scene) => {
    const other = await scene.open();
    const tries = 60;
    const granted: Grant[] = [];
    for (let index = 0; index < tries; index += 1) {
      const impatience = new AbortController();
      const claiming = scene.claim({ signal: impatience.signal, ...(index % 2 === 0 ? {} : { engine: other }) });
      const submitting = scene.submit(`k${index}`);
      // Fire at different moments of the race.
      if (index % 3 === 1) await Promise.resolve();
      if (index % 3 === 2) await nextTurn();
      impatience.abort();
      granted.push(...(await claiming));
      await submitting;
    }
    const ready = await scene.claimReady();
    const keys = new Set([...granted, ...ready].map(({ item }) => item.key));
    equal(keys.size, tries, "Keys that were granted or are ready at once");
    equal(granted.length + ready.length, tries, "Grants in all");
  },

  "a claim that was given up before it began takes no lease along": async (scene) => {
    await scene.submit("k");
    const granted = await scene.claim({ signal: AbortSignal.abort() });
    const ready = await scene.claimReady();
    equal(granted.length + ready.length, 1, "Grants in all");
  },

  "a claim with nothing to take is given up with nothing": async (scene) => {
    const impatience = new AbortController();
    const claims = [scene.claim({ signal: impatience.signal }), scene.claim({ signal: impatience.signal })];
    await nextTurn();
    impatience.abort();
    equal(await Promise.all(claims), [[], []], "What was taken");
  },

  "closing a handle ends what waits, and takes no lease along": async (scene) => {
    const other = await scene.open();
    await scene.submit("paused", { id: "item" });
    await scene.engine.pause({ queue: scene.queue, key: "paused", paused: true });
    const claiming = scene.claim({ engine: other, signal: scene.patience() });
    const watching = scene.outcome("item", other);
    await nextTurn();
    const submitting = scene.submit("k");
    await scene.close(other);
    const granted = await claiming;
    equal(await watching, undefined, "The outcome that was waited for");
    await submitting;
    // What was on its way to the handle that closed comes back in a moment; a lease that it took along would count an attempt.
    const ready = granted.length > 0 ? await scene.claimReady() : [await scene.claimOne()];
    const attempts = [...granted, ...ready].map(({ item }) => item.attempt);
    equal(attempts, [1], "Attempts of all that was granted");
  },

  "a closed handle says so": async (scene) => {
    const other = await scene.open();
    await scene.submit("k");
    await scene.close(other);
    const { queue } = scene;
    const signal = scene.patience();
    const claim = { queue, worker: "w", max: 1, leaseMs: scene.leaseMs, patienceMs: 1_000, signal };
    await refusedWith(other.submit([scene.entry("k")]), "CLOSED", "Submitting through a closed handle");
    await refusedWith(other.claim(claim), "CLOSED", "Claiming through a closed handle");
    await refusedWith(other.find({ queue, id: "x" }), "CLOSED", "Finding through a closed handle");
    await refusedWith(
      other.hold({ queue, key: "k", worker: "w", leaseMs: 1_000, signal: AbortSignal.abort() }),
      "CLOSED",
      "Holding through a closed handle",
    );
    await refusedWith(other.outcome({ queue, id: "x", signal }), "CLOSED", "Waiting through a closed handle");
    await other.close();
    equal((await scene.claimReady()).length, 1, "Items, through a handle that is open");
  },
});
