import { atLeast, atMost, equal, present } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";
import type { LockScene } from "../scene.ts";

/** Stores may count whole milliseconds. */
const ROUNDING_MS = 5;

export const delayed: readonly LockCase[] = lockCasesOf("delayed", {
  "after a loss nobody gets the lock for the delay": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal();
    const delayMs = delayOf(scene);
    await ann.take(scene.lock(), { delayAfterLossMs: delayMs });
    await ben.wait(scene.lock()).hold;
    const passedMs = scene.clock.monotonic() - ann.session.since.monotonic;
    const leastMs = scene.leaseMs + delayMs;
    atLeast(passedMs, leastMs - ROUNDING_MS, "Milliseconds from the last sign of life to the next hold");
    atMost(passedMs, leastMs + 2 * scene.slackMs, "Milliseconds from the last sign of life to the next hold");
  },

  "whoever asks during the delay is told": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal();
    await ann.take(scene.lock(), { delayAfterLossMs: longDelayOf(scene) });
    const waiting = await ben.waitInLine(scene.lock());
    const report = await ben.seesUntil(scene.lock(), (found) => found?.holders.length === 0);
    const until = present(report?.delayedUntil, "The end of the delay, as it is shown");
    atMost(until, scene.clock.wall() + longDelayOf(scene), "The end of the delay");
    atLeast(until, scene.clock.wall(), "The end of the delay");
    const eve = await scene.contender();
    await eve.isRefused(scene.lock(), "delayed", "A lock during its delay");
    waiting.giveUp();
    equal(await waiting.answer, { ok: false, why: "delayed" }, "The answer to one who gave up during the delay");
  },

  "there is no delay after a release": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock(), { delayAfterLossMs: longDelayOf(scene) });
    await ann.release(hold);
    await ben.take(scene.lock());
  },

  "there is no delay when one who waits gives up": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock());
    const waiting = await ben.waitInLine(scene.lock(), { delayAfterLossMs: longDelayOf(scene) });
    waiting.giveUp();
    await waiting.answer;
    await ann.release(hold);
    await ann.take(scene.lock());
  },

  "a delay keeps only the slot that was lost": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal();
    await ann.take(scene.lock(), { slots: 2, delayAfterLossMs: longDelayOf(scene) });
    const hold = await ben.take(scene.lock(), { slots: 2 });
    await ben.seesUntil(scene.lock(), (report) => report?.holders.length === 1);
    await ben.isRefused(scene.lock(), "delayed", "The slot that was lost", { slots: 2 });
    await ben.release(hold);
    await ben.take(scene.lock(), { slots: 2 });
  },
});

/** A delay that is waited for. */
function delayOf(scene: LockScene): number {
  return Math.min(scene.leaseMs, scene.locks.limits.longestDelayMs);
}

/** A delay that no case waits for. */
function longDelayOf(scene: LockScene): number {
  return Math.min(60_000, scene.locks.limits.longestDelayMs);
}
