import { isError } from "../domain/realms.ts";
import type { Failure } from "../domain/failure.ts";
import type { Ending, Item } from "../engine/port.ts";

/** What a worker has to tell. Nothing needs to be done about any of it for the queue to stay correct. */
export type WorkerEvent =
  | { readonly type: "started"; readonly item: Item; readonly fence: number }
  | { readonly type: "done"; readonly item: Item }
  /** The item is done; its handler had a result, which could not be kept. The outcome says so too, as `resultMissing`. Comes before `done`. */
  | { readonly type: "result-not-kept"; readonly item: Item; readonly reason: string }
  | { readonly type: "retry"; readonly item: Item; readonly failure: Failure; readonly delayMs: number }
  | { readonly type: "dead"; readonly item: Item; readonly failure: Failure }
  | { readonly type: "cancelling"; readonly item: Item }
  | { readonly type: "cancelled"; readonly item: Item }
  | { readonly type: "released"; readonly item: Item }
  /**
   * Once for each item that was begun under the lease and is not settled. `expired`: the local deadline passed. `taken`: the store said so. `late`: the store's answer came when the lease
   * was over, and the handler was not begun.
   */
  | { readonly type: "lost"; readonly item: Item; readonly fence: number; readonly why: "expired" | "taken" | "late" }
  /** After `lost`: the handler has ended, and nothing came of it. The item runs again, or did. */
  | { readonly type: "discarded"; readonly item: Item; readonly fence: number }
  /** Timers came late: a handler blocked the event loop, or the process was stopped or the machine slept. */
  | {
      readonly type: "stalled";
      readonly lateMs: number;
      readonly cause: "event loop blocked" | "process suspended";
      readonly keys: readonly string[];
    }
  /**
   * The store did not answer, or refused. Told when it begins, and rarely while it lasts: `failures` calls have failed in `forMs`, of
   * which `error` is the last. Baton tries again by itself.
   */
  | {
      readonly type: "trouble";
      readonly doing: string;
      readonly error: unknown;
      readonly failures: number;
      readonly forMs: number;
    }
  /** The trouble that began while `doing` this is over. */
  | { readonly type: "recovered"; readonly doing: string; readonly failures: number; readonly lastedMs: number }
  /** A worker could not start, and waiting will not help: its `ready` and `stopped` have rejected with the same error. */
  | { readonly type: "failed"; readonly queue: string; readonly worker: string; readonly error: unknown };

/** What a person should see when nobody listens to events: the few that mean a risk, in one sentence each. */
export function describeWarning(event: WorkerEvent): string | undefined {
  switch (event.type) {
    case "stalled":
      if (event.keys.length === 0) return undefined;
      return (
        `${event.cause === "event loop blocked" ? "The event loop was blocked" : "This process was suspended"} ` +
        `for ${event.lateMs} ms while it held ${event.keys.length} lease(s) (${event.keys.slice(0, 3).join(", ")}). ` +
        "Leases cannot be renewed meanwhile; those that ran out are lost and their items run again elsewhere. " +
        (event.cause === "event loop blocked"
          ? "Move long synchronous work into a worker thread, or take a longer lease."
          : "If this repeats, take a longer lease.")
      );
    case "lost":
      return event.why === "late" ? describeLate(event.item.key) : undefined;
    case "discarded":
      return `The handler for key ${event.item.key} ended after its lease was lost; its result was discarded. The item runs again.`;
    case "trouble":
      return event.failures === 1
        ? `Trouble ${event.doing}: ${messageOf(event.error)} Trying again.`
        : `Still trouble after ${seconds(event.forMs)} (${event.failures} failures), the last ${event.doing}: ${messageOf(event.error)}`;
    case "recovered":
      return `The trouble ${event.doing} is over. It lasted ${seconds(event.lastedMs)} (${event.failures} failure(s)). Work goes on.`;
    case "failed":
      return `Worker ${event.worker} could not start, and nothing of queue ${event.queue} is worked on here: ${messageOf(event.error)}`;
    case "result-not-kept":
      return (
        `The result of item ${event.item.id} (queue ${event.item.queue}, key ${event.item.key}) was not kept: ${event.reason}. ` +
        "The item is done, and its outcome says that the result is missing. Return something smaller that JSON can carry, or nothing."
      );
    case "started":
    case "done":
    case "retry":
    case "dead":
    case "cancelling":
    case "cancelled":
    case "released":
      return undefined;
  }
}

/** After it was settled: a result that was not kept is told. */
export function tellMissing(emit: (event: WorkerEvent) => void, item: Item, ending: Ending): void {
  if (ending.type !== "done" || ending.resultMissing === undefined) return;
  emit({ type: "result-not-kept", item, reason: ending.resultMissing });
}

function describeLate(key: string): string {
  return (
    `The lease on key ${key} was over before its handler could begin: the store was slow to answer, or the event loop was blocked. ` +
    "The handler was not begun. The item runs again."
  );
}

function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
