import { BatonError } from "../../../domain/errors.ts";
import { pause, systemClock } from "../../../domain/clock.ts";
import { equal, ok } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

/** How soon a call is made again that found the store away, and how often. */
const AGAIN_AFTER_MS = 100;
const MOST_TRIES = 200;

export const durable: readonly LockCase[] = lockCasesOf(
  "durable",
  {
    "a hold outlives a restart of the store": async (scene) => {
      const ann = await scene.contender();
      const hold = await ann.take(scene.lock(), { data: "kept" });
      await scene.restart();
      const ben = await back(() => scene.contender());
      await ben.isRefused(scene.lock(), "held", "A lock that was held before the restart");
      equal((await ben.locks.read(scene.lock()))?.holders[0]?.data, "kept", "Its data");
      ok((await back(() => ann.renew())) !== undefined, "The session goes on");
      equal(await back(() => ann.locks.release({ hold })), true, "Releasing after the restart");
      await ben.take(scene.lock());
    },

    "one who waits is served after a restart of the store": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const hold = await ann.take(scene.lock());
      const waiting = await ben.waitInLine(scene.lock());
      await scene.restart();
      equal(await back(() => ann.locks.release({ hold })), true, "Releasing after the restart");
      const next = await waiting.hold;
      ok(next.fence > hold.fence, `The fence after the restart, ${next.fence}, is above the one before, ${hold.fence}`);
    },

    "a lock that was retired is retired after a restart": async (scene) => {
      const ann = await scene.contender();
      await ann.release(await ann.take(scene.lock()), 600_000);
      await scene.restart();
      const ben = await back(() => scene.contender());
      await ben.isRefused(scene.lock(), "retired", "A lock that was retired before the restart");
    },
  },
  ["restart"],
);

/** Makes the call again while the store is on its way back. */
async function back<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      const code = error instanceof BatonError ? error.code : undefined;
      if ((code !== "STORE_UNAVAILABLE" && code !== "OUTCOME_UNKNOWN") || attempt === MOST_TRIES) throw error;
      await pause(systemClock, AGAIN_AFTER_MS);
    }
  }
}
