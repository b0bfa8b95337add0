import { ok } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

export const fenced: readonly LockCase[] = [
  ...lockCasesOf("fenced", {
    "fences rise from hold to hold": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const fences: number[] = [];
      for (const who of [ann, ben, ann, ann, ben]) {
        const hold = await who.take(scene.lock());
        fences.push(hold.fence);
        await who.release(hold);
      }
      expectRising(fences);
    },

    "fences rise when a lock is handed on": async (scene) => {
      const ann = await scene.contender();
      const ben = await scene.contender();
      const fences: number[] = [];
      let hold = await ann.take(scene.lock());
      for (let round = 0; round < 5; round += 1) {
        const [from, to] = round % 2 === 0 ? [ann, ben] : [ben, ann];
        const waiting = await to.waitInLine(scene.lock());
        fences.push(hold.fence);
        await from.release(hold);
        hold = await waiting.hold;
      }
      expectRising(fences);
    },

    "fences rise when a holder is lost": async (scene) => {
      const ben = await scene.contender();
      const ann = await scene.mortal();
      const lost = await ann.take(scene.lock());
      const next = await ben.wait(scene.lock()).hold;
      expectRising([lost.fence, next.fence]);
    },

    "the holders of one lock have different fences": async (scene) => {
      const ann = await scene.contender();
      const fences: number[] = [];
      for (let slot = 0; slot < 4; slot += 1) fences.push((await ann.take(scene.lock(), { slots: 4 })).fence);
      const { locks } = await scene.contender();
      expectRising(fences);
      const shown = (await locks.read(scene.lock()))?.holders.map(({ fence }) => fence) ?? [];
      ok(
        shown.toSorted((a, b) => a - b).join() === fences.join(),
        `The fences that are shown, ${shown.join()}, are those that were given, ${fences.join()}`,
      );
    },
  }),

  ...lockCasesOf(
    "fenced",
    {
      "fences rise over a restart": async (scene) => {
        const fences: number[] = [];
        for (let round = 0; round < 3; round += 1) {
          const ann = await scene.contender();
          const hold = await ann.take(scene.lock());
          fences.push(hold.fence);
          await ann.release(hold);
          await scene.restart();
        }
        expectRising(fences);
      },
    },
    ["restart"],
  ),
];

export function expectRising(fences: readonly number[]): void {
  for (const [index, fence] of fences.entries()) {
    const earlier = fences[index - 1] ?? 0;
    ok(
      Number.isSafeInteger(fence) && fence > earlier,
      `Fences must rise strictly and be above zero; they were ${fences.join(", ")}`,
    );
  }
}
