import { setImmediate as nextTurn } from "node:timers/promises";
import { atMost, equal, refusedWith } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";
import type { LockScene } from "../scene.ts";

const ROUNDS = 10;

export const exclusive: readonly LockCase[] = lockCasesOf("exclusive", {
  "a lock has one holder at a time": async (scene) => {
    await crowd(scene, 1);
  },

  "a lock with slots never has more holders than slots": async (scene) => {
    await crowd(scene, 3);
  },

  "a lock that is held is refused to everybody else": async (scene) => {
    const ann = await scene.contender();
    const sister = await scene.contender({ locks: ann.locks });
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock());
    await ben.isRefused(scene.lock(), "held", "A lock that another process holds");
    await sister.isRefused(scene.lock(), "held", "A lock that another session of the process holds");
    await ann.isRefused(scene.lock(), "held", "A lock that the same session holds");
    await ann.release(hold);
    await ben.take(scene.lock());
  },

  "locks of different names do not touch each other": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const names = ["a", "A", "a/b", "a.b", "a.*", "a.>", "a b", "%61", "../a", "ä", "a\u0308", "🔒", "a\n", "lock/a"];
    for (const name of names) await ann.take(scene.lock(name));
    for (const name of names) await ben.isRefused(scene.lock(name), "held", `Lock ${JSON.stringify(name)}`);
    const listed = (await ben.locks.list()).map(({ name }) => name).filter((name) => name.startsWith(scene.lock("")));
    equal(listed.toSorted(), names.map((name) => scene.lock(name)).toSorted(), "The names, as they are listed");
  },

  "a lock with slots has as many holders": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const first = await ann.take(scene.lock(), { slots: 3 });
    await ben.take(scene.lock(), { slots: 3 });
    await ben.take(scene.lock(), { slots: 3 });
    await ben.isRefused(scene.lock(), "held", "The fourth of three", { slots: 3 });
    const waiting = ben.wait(scene.lock(), { slots: 3 });
    await ann.release(first);
    const fourth = await waiting.hold;
    await ann.isRefused(scene.lock(), "held", "The slot that was handed on", { slots: 3 });
    await ben.release(fourth);
    await ann.take(scene.lock(), { slots: 3 });
  },

  "those who do not agree about the slots are refused": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock(), { slots: 2 });
    await refusedWith(ben.ask(scene.lock(), { slots: 3 }), "INVALID_INPUT", "Asking with other slots");
    await refusedWith(ben.wait(scene.lock()).answer, "INVALID_INPUT", "Waiting with other slots");
    await ann.release(hold);
    await ben.take(scene.lock(), { slots: 3 });
  },

  "a session that is renewed keeps its lock beyond the lease": async (scene) => {
    const ann = await scene.renewed();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock());
    const waiting = await ben.waitInLine(scene.lock());
    await scene.letLeasesRunOut(ann.session.leaseMs);
    await scene.letLeasesRunOut(ann.session.leaseMs);
    await ben.isRefused(scene.lock(), "held", "A lock under a session that goes on");
    await ann.release(hold);
    await waiting.hold;
  },
});

/** Many calls on several connections, each of which counts who is inside with it. */
async function crowd(scene: LockScene, slots: number): Promise<void> {
  let inside = 0;
  let most = 0;
  const fences: number[] = [];
  const contenders = await Promise.all(Array.from({ length: 4 }, () => scene.contender()));
  const play = contenders.flatMap((contender) =>
    Array.from({ length: 2 }, async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const hold = await contender.wait(scene.lock(), { slots }).hold;
        inside += 1;
        most = Math.max(most, inside);
        fences.push(hold.fence);
        await nextTurn();
        inside -= 1;
        await contender.release(hold);
      }
    }),
  );
  await Promise.all(play);
  atMost(most, slots, "Holders at a time");
  equal(new Set(fences).size, fences.length, "Different fences");
  equal(await scene.locks.read(scene.lock()), undefined, "What is left when all have gone");
}
