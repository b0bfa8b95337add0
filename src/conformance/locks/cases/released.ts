import { equal } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

export const released: readonly LockCase[] = lockCasesOf("released", {
  "a hold is released once": async (scene) => {
    const ann = await scene.contender();
    const hold = await ann.take(scene.lock());
    await ann.release(hold);
    equal(await ann.locks.release({ hold }), false, "Releasing a second time");
    equal(await ann.locks.read(scene.lock()), undefined, "The lock after its release");
  },

  "releasing again does not free the next holder's lock": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const first = await ann.take(scene.lock());
    await ann.release(first);
    const second = await ben.take(scene.lock());
    equal(await ann.locks.release({ hold: first }), false, "Releasing a second time");
    await ann.isRefused(scene.lock(), "held", "The lock of the next holder");
    await ben.release(second);
  },

  "a hold that was lost cannot be released": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal();
    const lost = await ann.take(scene.lock());
    const next = await ben.wait(scene.lock()).hold;
    equal(await ann.locks.release({ hold: lost }), false, "Releasing a hold that another has taken over");
    equal(await ann.locks.release({ hold: lost, retireMs: 60_000 }), false, "Retiring the lock under a lost hold");
    await ann.locks.read(scene.lock()).then((report) => equal(report?.holders[0]?.fence, next.fence, "The holder"));
    await ben.release(next);
    equal(await ben.locks.read(scene.lock()), undefined, "The lock that nobody has retired");
  },

  "a hold that was lost cannot be released, also when nobody took it": async (scene) => {
    const ann = await scene.mortal();
    const lost = await ann.take(scene.lock());
    await scene.letLeasesRunOut();
    equal(await ann.locks.release({ hold: lost }), false, "Releasing a hold whose session ran out");
  },
});
