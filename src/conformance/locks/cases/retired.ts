import { atLeast, atMost, equal, present } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

/** Stores may count whole milliseconds. */
const ROUNDING_MS = 5;
const LONG_MS = 60_000;

export const retired: readonly LockCase[] = lockCasesOf("retired", {
  "a lock that was retired is refused": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock());
    await ann.release(hold, LONG_MS);
    await ben.isRefused(scene.lock(), "retired", "A lock that was retired");
    await ann.isRefused(scene.lock(), "retired", "A lock that was retired, to the one who did");
    const until = present((await ben.locks.read(scene.lock()))?.retiredUntil, "Until when it is retired");
    atMost(until, scene.clock.wall() + LONG_MS, "Until when it is retired");
    atLeast(until, scene.clock.wall() + LONG_MS / 2, "Until when it is retired");
  },

  "a lock is free again when its retirement is over": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const retireMs = scene.leaseMs;
    const hold = await ann.take(scene.lock());
    const before = scene.clock.monotonic();
    await ann.release(hold, retireMs);
    const next = await ben.wait(scene.lock()).hold;
    atLeast(scene.clock.monotonic() - before, retireMs - ROUNDING_MS, "Milliseconds from retirement to the next hold");
    atMost(scene.clock.monotonic() - before, retireMs + scene.slackMs, "Milliseconds from retirement to the next hold");
    await ben.release(next);
    await ann.take(scene.lock());
  },

  "one who waits for a lock that is retired is told when it gives up": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock());
    const waiting = await ben.waitInLine(scene.lock());
    await ann.release(hold, LONG_MS);
    waiting.giveUp();
    equal(await waiting.answer, { ok: false, why: "retired" }, "The answer to one who gave up");
    await ann.isRefused(scene.lock(), "retired", "A lock that was retired");
  },

  "retiring a lock of several slots leaves its other holders alone": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const first = await ann.take(scene.lock(), { slots: 3 });
    const second = await ben.take(scene.lock(), { slots: 3 });
    await ann.release(first, LONG_MS);
    await ann.isRefused(scene.lock(), "retired", "A lock that was retired", { slots: 3 });
    await ben.release(second);
    await ann.isRefused(scene.lock(), "retired", "A lock that was retired", { slots: 3 });
  },

  "a lock of several slots is retired for as long as any of its holders has said": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const first = await ann.take(scene.lock(), { slots: 2 });
    const second = await ben.take(scene.lock(), { slots: 2 });
    await ann.release(first, LONG_MS);
    const until = (await ann.locks.read(scene.lock()))?.retiredUntil;
    await ben.release(second, 0);
    equal((await ann.locks.read(scene.lock()))?.retiredUntil, until, "Until when it is retired");
    await ann.isRefused(scene.lock(), "retired", "A lock that was retired", { slots: 2 });
  },
});
