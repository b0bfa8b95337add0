import { setImmediate as nextTurn } from "node:timers/promises";
import { equal, ok } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

export const asked: readonly LockCase[] = [
  ...lockCasesOf("asked", {
    "whoever waits gets the lock when it is released": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const first = await ann.take(scene.lock());
      const waiting = await ben.waitInLine(scene.lock());
      await ann.release(first);
      const second = await waiting.hold;
      await ann.isRefused(scene.lock(), "held", "A lock that was handed on");
      await ben.release(second);
      await ann.take(scene.lock());
    },

    "whoever waits gets a free lock at once": async (scene) => {
      const ann = await scene.contender();
      await ann.wait(scene.lock()).hold;
    },

    "waiting ends when the signal fires, and leaves nothing behind": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const hold = await ann.take(scene.lock());
      const waiting = await ben.waitInLine(scene.lock());
      waiting.giveUp();
      equal(await waiting.answer, { ok: false, why: "held" }, "The answer to one who gave up");
      await ann.release(hold);
      equal(await ann.locks.read(scene.lock()), undefined, "The lock that nobody waits for any more");
      await ann.take(scene.lock());
    },

    "one who gives up does not hold up the others": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const eve = await scene.contender();
      const hold = await ann.take(scene.lock());
      const first = await ben.waitInLine(scene.lock());
      const second = await eve.waitInLine(scene.lock());
      first.giveUp();
      await first.answer;
      await ann.release(hold);
      await second.hold;
    },

    "a hold that races with the signal is returned or not made": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      for (let round = 0; round < 24; round += 1) {
        const hold = await ann.take(scene.lock());
        const waiting = await ben.waitInLine(scene.lock());
        const releasing = ann.release(hold);
        // Fire at different moments of the race.
        if (round % 3 === 1) await nextTurn();
        if (round % 3 === 2) await releasing;
        waiting.giveUp();
        const result = await waiting.answer;
        await releasing;
        if (result.ok) {
          await ann.isRefused(scene.lock(), "held", "A lock whose waiter was granted it");
          await ben.release(result.hold);
        }
      }
      equal(await ann.locks.read(scene.lock()), undefined, "What the races have left");
    },

    "a signal that fires when the lock is held changes nothing": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const waiting = ann.wait(scene.lock());
      const hold = await waiting.hold;
      waiting.giveUp();
      await ben.isRefused(scene.lock(), "held", "A lock whose holder's signal fired later");
      await ann.release(hold);
    },

    "calls under one session exclude each other": async (scene) => {
      const ann = await scene.contender();
      const first = await ann.take(scene.lock());
      const waiting = await ann.waitInLine(scene.lock());
      await ann.release(first);
      const second = await waiting.hold;
      equal(await ann.locks.release({ hold: first }), false, "Releasing the first hold again");
      await ann.isRefused(scene.lock(), "held", "The lock under the second hold");
      await ann.release(second);
    },

    "many who wait are all served": async (scene) => {
      const contenders = await Promise.all(Array.from({ length: 4 }, () => scene.contender()));
      const ann = await scene.contender();
      const hold = await ann.take(scene.lock());
      // More than any store keeps places for.
      const waiting = Array.from({ length: 100 }, async (_, index) => {
        const contender = contenders[index % contenders.length] ?? ann;
        await contender.release(await contender.wait(scene.lock()).hold);
      });
      await nextTurn();
      await ann.release(hold);
      await Promise.all(waiting);
      equal(await ann.locks.read(scene.lock()), undefined, "The lock when all were served");
    },
  }),

  ...lockCasesOf(
    "fair",
    {
      "those who wait are served in the order in which they came": async (scene) => {
        const contenders = await Promise.all(Array.from({ length: 3 }, () => scene.contender()));
        const ann = await scene.contender();
        const hold = await ann.take(scene.lock());
        const served: number[] = [];
        const serving: Promise<void>[] = [];
        for (let index = 0; index < 9; index += 1) {
          const contender = contenders[(index * 2) % 3] ?? ann;
          const waiting = await contender.waitInLine(scene.lock());
          const serve = async (): Promise<void> => {
            const got = await waiting.hold;
            served.push(index);
            await contender.release(got);
          };
          serving.push(serve());
        }
        await ann.release(hold);
        await Promise.all(serving);
        equal(served, [0, 1, 2, 3, 4, 5, 6, 7, 8], "The order in which they were served");
      },

      "a newcomer does not overtake those who wait": async (scene) => {
        const ann = await scene.contender();
        const ben = await scene.contender();
        const eve = await scene.contender();
        const hold = await ann.take(scene.lock());
        const waiting = await ben.waitInLine(scene.lock());
        const releasing = ann.release(hold);
        const newcomer = await eve.ask(scene.lock());
        await releasing;
        ok(!newcomer.ok, "A newcomer is refused what another waits for");
        await waiting.hold;
      },
    },
    ["fair"],
  ),
];
