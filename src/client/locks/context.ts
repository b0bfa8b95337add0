import type { Clock } from "../../domain/clock.ts";
import type { Locks } from "../../locks/port.ts";
import type { Outages } from "../../worker/outages.ts";
import type { BatonEvent } from "../events.ts";

/** What everything about locks on one connection shares. */
export interface LockContext {
  readonly locks: Locks;
  readonly clock: Clock;
  readonly emit: (event: BatonEvent) => void;
  readonly outages: Outages;
}
