import { randomUUID } from "node:crypto";
import { locksOnRegister } from "../../../src/locks/locks-on-register.ts";
import type { Register } from "../../../src/locks/register.ts";
import type { LockStore } from "./player.ts";

export interface OpenedRegister {
  readonly register: Register;
  readonly watchesHolds: boolean;
}

/** Locks on the registers of one store, each with a handle of its own, as several processes have. */
export function registerStore(
  name: string,
  opened: readonly OpenedRegister[],
  times: Pick<LockStore, "leaseMs" | "slackMs" | "clock">,
): LockStore {
  const [first] = opened;
  if (first === undefined) throw new Error("A store of locks has at least one register.");
  const { register } = first;
  return {
    handles: opened.map((one) => locksOnRegister({ name, newId: randomUUID, clock: times.clock, ...one })),
    async takeAway(lock) {
      const cell = await register.read(`lock/${lock}`);
      if (cell !== undefined) await register.write({ name: cell.name, expected: cell.version, value: undefined });
    },
    sessions: async () => (await register.list("session/")).map((cell) => cell.name.slice("session/".length)),
    ...times,
  };
}
