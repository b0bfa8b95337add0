import { describeWarning as describeWorkerWarning, type WorkerEvent } from "../worker/events.ts";
import { describeLockWarning, type LockEvent } from "./locks/events.ts";

/** What a connection has to tell: of its workers and of its locks. */
export type BatonEvent = WorkerEvent | LockEvent;

/** What a person should see when nobody listens to events: the few that mean a risk, in one sentence each. */
export function describeWarning(event: BatonEvent): string | undefined {
  switch (event.type) {
    case "locked":
    case "unlocked":
    case "session-lost":
    case "session-stalled":
    case "elected":
    case "deposed":
      return describeLockWarning(event);
    default:
      return describeWorkerWarning(event);
  }
}
