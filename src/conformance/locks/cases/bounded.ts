import type { SessionRequest } from "../../../locks/port.ts";
import { equal, refusedWith } from "../../expect.ts";
import { type LockCase, lockCasesOf } from "../case.ts";

export const bounded: readonly LockCase[] = lockCasesOf("bounded", {
  "leases outside of the limits are refused": async (scene) => {
    const { locks } = scene;
    const { shortestLeaseMs, longestLeaseMs } = locks.limits;
    const request: SessionRequest = { owner: "ann", leaseMs: longestLeaseMs, expiry: "release" };
    for (const leaseMs of [shortestLeaseMs - 1, longestLeaseMs + 1, 0, -1, NaN, Infinity]) {
      await refusedWith(locks.openSession({ ...request, leaseMs }), "INVALID_INPUT", `A lease of ${leaseMs} ms`);
    }
    for (const leaseMs of [shortestLeaseMs, longestLeaseMs]) {
      await locks.closeSession(await locks.openSession({ ...request, leaseMs }));
    }
    await refusedWith(locks.openSession({ ...request, owner: "" }), "INVALID_INPUT", "A session without an owner");
  },

  "delays, slots and data outside of the limits are refused": async (scene) => {
    const ann = await scene.contender();
    const { longestDelayMs, mostSlots } = ann.locks.limits;
    for (const delayAfterLossMs of [-1, longestDelayMs + 1, NaN, 1.5]) {
      const asking = ann.ask(scene.lock(), { delayAfterLossMs });
      await refusedWith(asking, "INVALID_INPUT", `A delay of ${delayAfterLossMs} ms`);
    }
    for (const slots of [0, -1, 1.5, NaN, mostSlots + 1]) {
      await refusedWith(ann.ask(scene.lock(), { slots }), "INVALID_INPUT", `${slots} slots`);
    }
    await refusedWith(ann.ask(scene.lock(), { data: "x".repeat(4_097) }), "INVALID_INPUT", "Data that is too long");
    equal(await ann.locks.read(scene.lock()), undefined, "The lock that was asked for");
    const most = { delayAfterLossMs: longestDelayMs, slots: mostSlots, data: "x".repeat(4_096) };
    const hold = await ann.take(scene.lock(), most);
    equal((await ann.locks.read(scene.lock()))?.holders[0]?.data, most.data, "Data as long as allowed");
    for (const retireMs of [-1, NaN, Infinity]) {
      await refusedWith(ann.locks.release({ hold, retireMs }), "INVALID_INPUT", `Retiring for ${retireMs} ms`);
    }
    await ann.release(hold);
  },

  "names that are none are refused": async (scene) => {
    const ann = await scene.contender();
    const never = AbortSignal.abort();
    for (const name of ["", "a\0b", "\ud800", "x".repeat(513), "ä".repeat(257)]) {
      const shown = JSON.stringify(name.slice(0, 10));
      await refusedWith(ann.ask(name), "INVALID_INPUT", `Asking for ${shown}`);
      await refusedWith(ann.locks.read(name), "INVALID_INPUT", `Reading ${shown}`);
      const watching = ann.locks.watch({ name, changed: () => undefined, signal: never });
      await refusedWith(watching, "INVALID_INPUT", `Watching ${shown}`);
    }
    const long = scene.lock("x".repeat(512)).slice(0, 512);
    const hold = await ann.take(long);
    equal((await ann.locks.read(long))?.name, long, "A name as long as allowed");
    await ann.release(hold);
  },

  "a lock with as many holders and waiters as there can be, and the longest data": async (scene) => {
    const ann = await scene.contender();
    const slots = Math.min(ann.locks.limits.mostSlots, 32);
    const data = "x".repeat(4_096);
    const holds = [];
    for (let slot = 0; slot < slots; slot += 1) holds.push(await ann.take(scene.lock(), { slots, data }));
    await ann.isRefused(scene.lock(), "held", "One more than there can be", { slots });
    for (const hold of holds) await ann.release(hold);
    equal(await ann.locks.read(scene.lock()), undefined, "The lock when all have gone");
  },
});
