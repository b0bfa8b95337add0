import type { Failure } from "../domain/failure.ts";
import type { Item } from "../engine/port.ts";

/** What a worker has to tell. Nothing needs to be done about any of it for the queue to stay correct. */
export type WorkerEvent =
  | { readonly type: "started"; readonly item: Item; readonly fence: number }
  | { readonly type: "done"; readonly item: Item }
  | { readonly type: "retry"; readonly item: Item; readonly failure: Failure; readonly delayMs: number }
  | { readonly type: "dead"; readonly item: Item; readonly failure: Failure }
  | { readonly type: "cancelling"; readonly item: Item }
  | { readonly type: "cancelled"; readonly item: Item }
  | { readonly type: "released"; readonly item: Item }
  /** `expired`: the local deadline passed. `taken`: the store said so. `discarded`: the handler ended after the loss. */
  | {
      readonly type: "lost";
      readonly item: Item;
      readonly fence: number;
      readonly why: "expired" | "taken" | "discarded";
    }
  /** Timers came late: a handler blocked the event loop, or the process was stopped or the machine slept. */
  | {
      readonly type: "stalled";
      readonly lateMs: number;
      readonly cause: "event loop blocked" | "process suspended";
      readonly keys: readonly string[];
    }
  /** The store did not answer, or refused. The worker tries again by itself. */
  | { readonly type: "trouble"; readonly doing: string; readonly error: unknown };

/** What a person should see when nobody listens to events: the few that mean a risk, in one sentence each. */
export function describeWarning(event: WorkerEvent): string | undefined {
  switch (event.type) {
    case "stalled":
      return (
        `${event.cause === "event loop blocked" ? "The event loop was blocked" : "This process was suspended"} ` +
        `for ${event.lateMs} ms while it held ${event.keys.length} lease(s) (${event.keys.slice(0, 3).join(", ")}). ` +
        "Leases cannot be renewed meanwhile; those that ran out are lost and their items run again elsewhere. " +
        (event.cause === "event loop blocked"
          ? "Move long synchronous work into a worker thread, or take a longer lease."
          : "If this repeats, take a longer lease.")
      );
    case "lost":
      return event.why === "discarded"
        ? `The handler for key ${event.item.key} ended after its lease was lost; its result was discarded. The item runs again.`
        : undefined;
    case "trouble":
      return `Trouble ${event.doing}: ${event.error instanceof Error ? event.error.message : String(event.error)} Trying again.`;
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
