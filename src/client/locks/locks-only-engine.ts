import { BatonError } from "../../domain/errors.ts";
import type { Engine, Finding } from "../../engine/port.ts";
import type { Locks } from "../../locks/port.ts";

/** A store that keeps locks and nothing else, as an engine: whatever is about queues is refused, and says so. */
export function locksOnlyEngine(locks: Locks, check: () => Promise<readonly Finding[]>): Engine {
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
    queues: refuse,
    keys: refuse,
    dead: refuse,
    revive: refuse,
    check,
    close: () => locks.close(),
  };
}
