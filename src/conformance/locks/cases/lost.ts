import { pause } from "../../../domain/clock.ts";
import { atLeast, atMost, equal, ok } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";
import { expectRising } from "./fenced.ts";

/** Stores may count whole milliseconds. */
const ROUNDING_MS = 5;

export const lost: readonly LockCase[] = [
  ...lockCasesOf("lost", {
    "a lock that is not renewed goes to a waiter after the lease, and not before": async (scene) => {
      const ben = await scene.contender();
      const ann = await scene.mortal();
      await ann.take(scene.lock());
      await ben.wait(scene.lock()).hold;
      const passedMs = scene.clock.monotonic() - ann.session.since.monotonic;
      atLeast(passedMs, scene.leaseMs - ROUNDING_MS, "Milliseconds from the last sign of life to the next hold");
      atMost(passedMs, scene.leaseMs + scene.slackMs, "Milliseconds from the last sign of life to the next hold");
    },

    "a lock is refused to whoever comes before the lease has passed": async (scene) => {
      const ben = await scene.contender();
      const ann = await scene.mortal();
      await ann.take(scene.lock());
      let result = await ben.ask(scene.lock());
      while (!result.ok) {
        await pause(scene.clock, scene.leaseMs / 20);
        result = await ben.ask(scene.lock());
      }
      const passedMs = scene.clock.monotonic() - ann.session.since.monotonic;
      atLeast(passedMs, scene.leaseMs - ROUNDING_MS, "Milliseconds from the last sign of life to the next hold");
    },

    "a lock whose holder is lost is free for whoever comes": async (scene) => {
      const ann = await scene.mortal();
      await ann.take(scene.lock(), { slots: 2 });
      await scene.letLeasesRunOut();
      const ben = await scene.contender();
      // Nobody is left who could disagree about the slots.
      await ben.take(scene.lock());
    },

    "whoever stalls beyond its lease has lost the lock, and cannot hurt the next holder": async (scene) => {
      const ben = await scene.contender();
      const ann = await scene.mortal();
      const before = await ann.take(scene.lock());
      const after = await ben.wait(scene.lock()).hold;
      expectRising([before.fence, after.fence]);
      equal(await ann.renew(), undefined, "A sign of life after the stall");
      equal(await ann.locks.release({ hold: before }), false, "A release after the stall");
      const report = await ann.locks.read(scene.lock());
      equal(
        report?.holders.map(({ fence, session }) => [fence, session]),
        [[after.fence, ben.session.id]],
        "The holder after that",
      );
    },

    "one slot that is lost is given on, and the others are left alone": async (scene) => {
      const ben = await scene.contender();
      const ann = await scene.mortal();
      await ann.take(scene.lock(), { slots: 2 });
      const kept = await ben.take(scene.lock(), { slots: 2 });
      await ben.wait(scene.lock(), { slots: 2 }).hold;
      await ben.isRefused(scene.lock(), "held", "The third of two", { slots: 2 });
      await ben.release(kept);
    },
  }),

  ...lockCasesOf(
    "lost",
    {
      "a lock whose holder crashed goes to a waiter after the lease, and not before": async (scene) => {
        const ben = await scene.contender();
        const ann = await scene.mortal();
        await ann.take(scene.lock());
        const waiting = await ben.waitInLine(scene.lock());
        await ann.renew();
        const since = scene.clock.monotonic();
        await scene.crash(ann);
        await waiting.hold;
        const passedMs = scene.clock.monotonic() - since;
        // From before the last sign of life, so from a little earlier than measured here.
        atLeast(passedMs, scene.leaseMs - scene.leaseMs / 4, "Milliseconds from the crash to the next hold");
        atMost(passedMs, scene.leaseMs + scene.slackMs, "Milliseconds from the crash to the next hold");
      },

      "one who crashed in line does not hold up those behind it": async (scene) => {
        const ann = await scene.contender();
        const eve = await scene.contender();
        const hold = await ann.take(scene.lock());
        const dead = await scene.mortal();
        await dead.waitInLine(scene.lock());
        const waiting = await eve.waitInLine(scene.lock());
        await scene.crash(dead);
        // It is the turn of the one who is dead, and nobody knows yet.
        await ann.release(hold);
        await waiting.hold;
      },

      "one who crashed in line long ago does not hold up those behind it": async (scene) => {
        const ann = await scene.contender();
        const eve = await scene.contender();
        const hold = await ann.take(scene.lock());
        const dead = await scene.mortal();
        await dead.waitInLine(scene.lock());
        await scene.crash(dead);
        const waiting = eve.wait(scene.lock());
        await scene.letLeasesRunOut();
        await ann.release(hold);
        await waiting.hold;
      },

      "holder and line crashed together: the lock is free for whoever comes": async (scene) => {
        const eve = await scene.contender();
        const connections = [await scene.open(), await scene.open(), await scene.open()];
        const [holder, first, second] = await Promise.all(connections.map((locks) => scene.mortal({ locks })));
        ok(holder !== undefined && first !== undefined && second !== undefined, "There are three");
        await holder.take(scene.lock());
        await first.waitInLine(scene.lock());
        await second.waitInLine(scene.lock());
        await Promise.all([holder, first, second].map((one) => scene.crash(one)));
        await eve.wait(scene.lock()).hold;
        const report = await eve.locks.read(scene.lock());
        equal([report?.holders.length, report?.waiting ?? 0], [1, 0], "Holders and waiters that are left");
      },
    },
    ["crash"],
  ),
];
