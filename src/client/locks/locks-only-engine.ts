import { BatonError } from "../../domain/errors.ts";
import type { Engine, Finding } from "../../engine/port.ts";
import type { Locks } from "../../locks/port.ts";

export interface LockStore extends Locks {
  /** What an operator should know about it; of damaged locks, too, if it has repairs. */
  check?(): Promise<readonly Finding[]>;
}

/** A store that keeps locks and nothing else, as an engine: whatever is about queues is refused, and says so. */
export function locksOnlyEngine(locks: LockStore): Engine {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new BatonError(
        "LOCKS_ONLY",
        `A ${locks.name} store keeps locks, sessions and elections; it has no queues. Nothing was done. ` +
          "For queues, connect to sqlite:FILE or nats://HOST.",
      ),
    );
  return {
    name: locks.name,
    locks: () => locks,
    declare: refuse,
    submit: refuse,
    claim: refuse,
    hold: refuse,
    renew: refuse,
    settle: refuse,
    find: refuse,
    outcome: refuse,
    cancel: refuse,
    pause: refuse,
    deleteQueue: refuse,
    queues: refuse,
    keys: refuse,
    dead: refuse,
    revive: refuse,
    check: async () => {
      if (locks.check !== undefined) return await locks.check();
      const { length } = await locks.list();
      return [
        { severity: "ok", subject: locks.name, detail: `answers, and has ${length} lock${length === 1 ? "" : "s"}` },
      ];
    },
    ...(locks.check === undefined || locks.repairs === undefined ? {} : { repairs: locks.repairs.bind(locks) }),
    close: () => locks.close(),
  };
}
