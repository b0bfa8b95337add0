import { setImmediate as nextTurn } from "node:timers/promises";
import { BatonError } from "../../../domain/errors.ts";
import { equal, ok, refusedWith } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

export const honest: readonly LockCase[] = [
  ...lockCasesOf("honest", {
    "a connection that is closed says so": async (scene) => {
      const ann = await scene.contender();
      const hold = await ann.take(scene.lock());
      await ann.locks.close();
      await refusedWith(ann.ask(scene.lock()), "CLOSED", "Asking through a closed connection");
      await refusedWith(ann.renew(), "CLOSED", "Renewing through a closed connection");
      await refusedWith(ann.locks.release({ hold }), "CLOSED", "Releasing through a closed connection");
      await refusedWith(ann.locks.read(scene.lock()), "CLOSED", "Reading through a closed connection");
      await refusedWith(ann.locks.list(), "CLOSED", "Listing through a closed connection");
      await ann.locks.close();
      const ben = await scene.contender();
      await ben.isRefused(scene.lock(), "held", "The lock of a session that is left to run out");
    },

    "closing a connection ends what waits, and takes no hold along": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const hold = await ann.take(scene.lock());
      const waiting = await ben.waitInLine(scene.lock());
      const watching = ben.locks.watch({
        name: scene.lock(),
        changed: () => undefined,
        signal: new AbortController().signal,
      });
      await nextTurn();
      await ben.locks.close();
      const result = await waiting.answer;
      equal(result.ok, false, "Whether one who was closed got the lock");
      await watching;
      await ann.release(hold);
      await ann.take(scene.lock());
    },
  }),

  ...lockCasesOf(
    "honest",
    {
      "a lock whose grant was not heard of is granted, or nobody's": async (scene) => {
        const ann = await scene.contender();
        const ben = await scene.contender();
        for (let round = 0; round < 4; round += 1) {
          scene.loseReply(ann);
          const hold = await repeat(() => ann.take(scene.lock()));
          await ben.isRefused(scene.lock(), "held", "A lock that was granted");
          await ann.release(hold);
          await ben.release(await ben.wait(scene.lock()).hold);
        }
        equal(await ben.locks.read(scene.lock()), undefined, "What is left");
      },

      "one whose place in line was not heard of is served": async (scene) => {
        const ann = await scene.contender();
        const ben = await scene.contender();
        const hold = await ann.take(scene.lock());
        scene.loseReply(ben);
        const waiting = await ben.waitInLine(scene.lock());
        await ann.release(hold);
        await ben.release(await waiting.hold);
        equal(await ann.locks.read(scene.lock()), undefined, "What is left");
      },

      "a release that was not heard of happened": async (scene) => {
        const ann = await scene.contender();
        const ben = await scene.contender();
        const hold = await ann.take(scene.lock());
        scene.loseReply(ann);
        equal(await repeat(() => ann.locks.release({ hold })), true, "A release whose reply was lost");
        await ben.take(scene.lock());
      },

      "a sign of life that was not heard of is given again": async (scene) => {
        const ann = await scene.contender();
        scene.loseReply(ann);
        ok((await repeat(() => ann.renew())) !== undefined, "A session that lives can be renewed");
        ok((await ann.renew()) !== undefined, "It can be renewed again");
        await ann.release(await ann.take(scene.lock()));
      },
    },
    ["loseReply"],
  ),
];

/** What the port says of a lost reply: repeating the call is safe. */
async function repeat<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof BatonError) || error.code !== "OUTCOME_UNKNOWN" || attempt === 3) throw error;
    }
  }
}
