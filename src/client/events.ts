import { describeWarning as describeWorkerWarning, type WorkerEvent } from "../worker/events.ts";
import { describeWakeWarning, type WakeEvent } from "../wake/outage.ts";
import { describeLockWarning, type LockEvent } from "./locks/events.ts";

/** What a connection has to tell: of its workers, of its locks and of what carries its wakes. */
export type BatonEvent = WorkerEvent | LockEvent | WakeEvent;

/** What a person should see when nobody listens to events: the few that mean a risk, in one sentence each. */
export function describeWarning(event: BatonEvent): string | undefined {
  switch (event.type) {
    case "locked":
    case "unlocked":
    case "lock-lost":
    case "lock-foreign":
    case "session-lost":
    case "session-stalled":
    case "elected":
    case "deposed":
      return describeLockWarning(event);
    case "wakes-lost":
    case "wakes-back":
      return describeWakeWarning(event);
    default:
      return describeWorkerWarning(event);
  }
}
