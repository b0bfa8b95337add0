import { ok } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";
import type { LockScene } from "../scene.ts";

/**
 * A wake-up takes a millisecond or a few. The bound leaves room for a busy machine, but none for a poll tick
 * of a second; and it must hold for most of several tries, because any one may meet a pause of the process.
 */
const PROMPT_MS = 250;
const TRIES = 5;

export const prompt: readonly LockCase[] = lockCasesOf("prompt", {
  "a lock is handed on at once": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    await expectPrompt(scene, async () => {
      const hold = await ann.take(scene.lock());
      const waiting = await ben.waitInLine(scene.lock());
      const began = scene.clock.monotonic();
      await ann.release(hold);
      const next = await waiting.hold;
      const tookMs = scene.clock.monotonic() - began;
      await ben.release(next);
      return tookMs;
    });
  },

  "a session that is closed frees its locks at once": async (scene) => {
    const ben = await scene.contender();
    await expectPrompt(scene, async () => {
      const ann = await scene.contender({ locks: scene.locks });
      await ann.take(scene.lock(), { delayAfterLossMs: scene.locks.limits.longestDelayMs });
      const waiting = await ben.waitInLine(scene.lock());
      const began = scene.clock.monotonic();
      await ann.close();
      const next = await waiting.hold;
      const tookMs = scene.clock.monotonic() - began;
      await ben.release(next);
      return tookMs;
    });
  },

  "waiting is given up at once": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    await ann.take(scene.lock());
    await expectPrompt(scene, async () => {
      const waiting = await ben.waitInLine(scene.lock());
      const began = scene.clock.monotonic();
      waiting.giveUp();
      await waiting.answer;
      return scene.clock.monotonic() - began;
    });
  },

  "a watch tells at once": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    await expectPrompt(scene, async () => {
      const seen = ben.seesUntil(scene.lock(), (report) => report?.holders.length === 1);
      const began = scene.clock.monotonic();
      const hold = await ann.take(scene.lock());
      await seen;
      const tookMs = scene.clock.monotonic() - began;
      await ann.release(hold);
      await ben.seesUntil(scene.lock(), (report) => report === undefined);
      return tookMs;
    });
  },
});

async function expectPrompt(scene: LockScene, attempt: () => Promise<number>): Promise<void> {
  const took: number[] = [];
  for (let index = 0; index < TRIES; index += 1) took.push(await attempt());
  const inTime = took.filter((ms) => ms < PROMPT_MS).length;
  const shown = took.map((ms) => ms.toFixed(0)).join(", ");
  ok(
    inTime > TRIES / 2,
    `Most of ${TRIES} tries must take less than ${PROMPT_MS} ms on lock ${scene.lock()}; they took ${shown}`,
  );
}
