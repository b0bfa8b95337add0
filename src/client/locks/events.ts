import type { Loss } from "./heartbeat.ts";

/** What locks have to tell. Nothing needs to be done about any of it for them to stay correct. */
export type LockEvent =
  | { readonly type: "locked"; readonly lock: string; readonly fence: number; readonly waitedMs: number }
  | { readonly type: "unlocked"; readonly lock: string; readonly fence: number }
  /** The store no longer has this one lock: somebody removed it by other means. Its signal has fired. */
  | { readonly type: "lock-lost"; readonly lock: string; readonly fence: number }
  /** It was acquired where the store also has what Baton did not write, whose users are not kept out. */
  | { readonly type: "lock-foreign"; readonly lock: string; readonly found: readonly string[] }
  /** One event for everything that hung on the session; the signals of these locks have fired. */
  | { readonly type: "session-lost"; readonly owner: string; readonly why: Loss; readonly locks: readonly string[] }
  /** Timers came late: something blocked the event loop, or the process was stopped or the machine slept. */
  | {
      readonly type: "session-stalled";
      readonly lateMs: number;
      readonly cause: "event loop blocked" | "process suspended";
      readonly locks: readonly string[];
    }
  | { readonly type: "elected"; readonly election: string; readonly fence: number }
  | { readonly type: "deposed"; readonly election: string; readonly fence: number; readonly why: "resigned" | "lost" };

/** What a person should see when nobody listens: the few that mean a risk. */
export function describeLockWarning(event: LockEvent): string | undefined {
  switch (event.type) {
    case "session-stalled":
      if (event.locks.length === 0) return undefined;
      return (
        `${event.cause === "event loop blocked" ? "The event loop was blocked" : "This process was suspended"} ` +
        `for ${event.lateMs} ms while it held ${event.locks.length} lock(s) (${event.locks.slice(0, 3).join(", ")}). ` +
        "No sign of life can be given meanwhile; a lock whose lease ran out is lost, and others may hold it. " +
        (event.cause === "event loop blocked"
          ? "Move long synchronous work into a worker thread, or take a longer lease."
          : "If this repeats, take a longer lease.")
      );
    case "session-lost":
      return event.locks.length === 0
        ? undefined
        : `The session of ${event.owner} is lost, with ${event.locks.length} lock(s) (${event.locks.slice(0, 3).join(", ")}): ` +
            `${event.why === "expired" ? "its time ran out before a sign of life got through" : "the store no longer has it"}. ` +
            "Their signals have fired.";
    case "lock-lost":
      return (
        `Lock ${event.lock} (fence ${event.fence}) is lost: the store no longer has it; somebody removed it, or destroyed its ` +
        "session. Others may hold it now. Its signal has fired."
      );
    case "lock-foreign":
      return (
        `Lock ${event.lock} is held, but at its place the store has what Baton did not write ` +
        `(${event.found.slice(0, 3).join(", ")}). A program that locks by that, such as consul lock with its key .lock, may run ` +
        "at the same time. Change over all users of a lock at once, or give Baton another prefix."
      );
    case "locked":
    case "unlocked":
    case "elected":
    case "deposed":
      return undefined;
  }
}
