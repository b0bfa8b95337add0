import { setImmediate as nextTurn } from "node:timers/promises";
import { atLeast, atMost, equal, ok, present, refusedWith } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

/** Stores may count whole milliseconds. */
const ROUNDING_MS = 5;
const NAMES = ["a", "b", "c", "d", "e"];

export const sessions: readonly LockCase[] = lockCasesOf("sessions", {
  "one sign of life keeps all locks of a session": async (scene) => {
    const ann = await scene.renewed();
    const ben = await scene.contender();
    for (const name of NAMES) await ann.take(scene.lock(name));
    await scene.letLeasesRunOut(ann.session.leaseMs);
    await scene.letLeasesRunOut(ann.session.leaseMs);
    for (const name of NAMES) await ben.isRefused(scene.lock(name), "held", "A lock of a session that is renewed");
  },

  "a session that runs out loses all its locks": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal();
    // At once: one after the other they may take longer than the session lasts, on a busy machine.
    await Promise.all(NAMES.map((name) => ann.take(scene.lock(name))));
    await Promise.all(NAMES.map((name) => ben.wait(scene.lock(name)).hold));
    equal(await ann.renew(), undefined, "Renewing the session that ran out");
  },

  "a session that ran out is over, also when nobody took its locks": async (scene) => {
    const ann = await scene.mortal();
    await ann.take(scene.lock());
    await scene.letLeasesRunOut();
    equal(await ann.renew(), undefined, "Renewing a session that ran out");
    equal(await ann.renew(), undefined, "Renewing it again");
    const ben = await scene.contender();
    await ben.take(scene.lock());
  },

  "a session counts from before it was opened": async (scene) => {
    const before = scene.clock.monotonic();
    const ann = await scene.mortal();
    atLeast(ann.session.since.monotonic, before, "The beginning of the session");
    atMost(ann.session.since.monotonic, scene.clock.monotonic(), "The beginning of the session");
    atMost(ann.session.since.wall, scene.clock.wall(), "The beginning of the session, by the wall clock");
    await ann.take(scene.lock());
    const ben = await scene.contender();
    await ben.wait(scene.lock()).hold;
    const passedMs = scene.clock.monotonic() - ann.session.since.monotonic;
    atLeast(passedMs, scene.leaseMs - ROUNDING_MS, "Milliseconds from the session to the loss of its lock");
  },

  "a sign of life counts from before it was given": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal();
    await ann.take(scene.lock());
    const before = scene.clock.monotonic();
    const since = present(await ann.renew(), "A session that lives can be renewed");
    atLeast(since.monotonic, before, "The beginning of the renewed lease");
    atMost(since.monotonic, scene.clock.monotonic(), "The beginning of the renewed lease");
    await ben.wait(scene.lock()).hold;
    const passedMs = scene.clock.monotonic() - since.monotonic;
    atLeast(passedMs, scene.leaseMs - ROUNDING_MS, "Milliseconds from the sign of life to the loss of the lock");
  },

  "a session that is closed frees what it holds, without a delay": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const delayAfterLossMs = scene.locks.limits.longestDelayMs;
    for (const name of NAMES) await ann.take(scene.lock(name), { delayAfterLossMs });
    await ann.close();
    for (const name of NAMES) await ben.take(scene.lock(name));
  },

  "a session that is closed gives up where it waits": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock());
    const waiting = await ben.waitInLine(scene.lock());
    await ben.close();
    await refusedWith(waiting.answer, "SESSION_LOST", "Waiting under a session that was closed");
    await ann.release(hold);
    equal(await ann.locks.read(scene.lock()), undefined, "The lock that nobody waits for any more");
  },

  "a session that is closed while it asks leaves nothing behind": async (scene) => {
    const ben = await scene.contender();
    for (let round = 0; round < 8; round += 1) {
      const ann = await scene.contender({ locks: scene.locks });
      const asking = ann.wait(scene.lock(), { delayAfterLossMs: scene.locks.limits.longestDelayMs });
      // Close at different moments of the call.
      for (let turn = 0; turn < round % 4; turn += 1) await nextTurn();
      await ann.close();
      await asking.answer.catch(() => undefined);
      await ben.release(await ben.take(scene.lock()));
    }
  },

  "a session that was closed is over": async (scene) => {
    const ann = await scene.contender();
    await ann.close();
    equal(await ann.renew(), undefined, "Renewing a session that was closed");
    await refusedWith(ann.ask(scene.lock()), "SESSION_LOST", "Asking under a session that was closed");
    await ann.close();
    equal(await scene.locks.read(scene.lock()), undefined, "The lock that was asked for");
  },

  "a hold of a session that was closed cannot be released": async (scene) => {
    const ann = await scene.contender();
    const hold = await ann.take(scene.lock());
    await ann.close();
    equal(await ann.locks.release({ hold, retireMs: 60_000 }), false, "Releasing after the session was closed");
    const ben = await scene.contender();
    await ben.take(scene.lock());
  },

  "waiting ends when the session runs out": async (scene) => {
    const ann = await scene.contender();
    const hold = await ann.take(scene.lock());
    const ben = await scene.mortal();
    const waiting = await ben.waitInLine(scene.lock());
    await refusedWith(waiting.answer, "SESSION_LOST", "Waiting under a session that ran out");
    await ann.release(hold);
    await ann.take(scene.lock());
  },

  "sessions of one connection live and die alone": async (scene) => {
    const ben = await scene.contender();
    const sister = await scene.contender();
    const ann = await scene.mortal({ locks: sister.locks });
    ok(ann.session.id !== sister.session.id, "Two sessions have different ids");
    await ann.take(scene.lock("hers"));
    const kept = await sister.take(scene.lock("kept"));
    await ben.wait(scene.lock("hers")).hold;
    await ben.isRefused(scene.lock("kept"), "held", "The lock of a session that lives");
    await sister.release(kept);
  },

  "signs of life may overlap": async (scene) => {
    const ann = await scene.contender();
    await ann.take(scene.lock());
    for (let round = 0; round < 5; round += 1) {
      const since = await Promise.all([ann.renew(), ann.renew(), ann.renew()]);
      ok(!since.includes(undefined), "A session that lives can be renewed by several calls at once");
    }
    const ben = await scene.contender();
    await ben.isRefused(scene.lock(), "held", "The lock of a session that lives");
  },
});
