/**
 * How a key stands: one message, the last one on the key's state subjects. It is the only authority. Everything else in the
 * stream (older states, waiting items that were taken, deliveries of consumers) means what this message says it means.
 */
import type { Failure } from "../../domain/failure.ts";
import type { Payload } from "../../domain/payload.ts";
import type { Attempts } from "../../engine/attempts.ts";
import type { Outcome } from "../../engine/port.ts";

/**
 * - `ready`: its first item may start. The message that makes it so is what consumers deliver.
 * - `running`: its first item is worked on. `held`: a lease without an item.
 * - `parked`: nobody has it, and nothing may start: a back-off, or a pause.
 * - `idle`: nothing is left. It vanishes by itself.
 */
export type Kind = "ready" | "running" | "held" | "parked" | "idle";

export interface KeyState {
  readonly kind: Kind;
  /** Of the write, to know it again when its reply was lost. */
  readonly nonce: string;
  /** In the order in which they go: items here go before items of their level that wait in the line. */
  readonly items: readonly KeyItem[];
  /** Per level: waiting items up to this sequence were taken. */
  readonly taken: readonly number[];
  /** How many of those are still in the stream. */
  readonly takenLeft: number;
  /** Waiting items that were cancelled, and may still be in the stream. */
  readonly cut: readonly number[];
  /** A ready key that is a record: the sequence of the message by which consumers know it. */
  readonly announced: number;
  /**
   * True: there may be a line, and new items join it. Whoever has the key looks at the line before it lets go, so an item may
   * join without a word. False: there is none, and an item can come only by a change of this state. Closing: whoever has
   * the key looks for the last time; an item that comes now has to say so first, and then joins the line.
   */
  readonly more: boolean | "closing";
  /**
   * A level at which the line had an item, or what the key carries comes first. Whoever has the key may choose its next item by a
   * look that is a moment old; so an item that is more urgent than this may not join without a word.
   */
  readonly line: number;
  readonly paused: boolean;
  /** So many items must end one by one: a lease that covered as many was lost. */
  readonly alone: number;
  readonly lease: StateLease | undefined;
  /** Holds that wait for the end of the lease, first come first. Whoever ends it hands the key to the first, in the same write. */
  readonly wanted: readonly StateLease[];
  /** Older states of this key that may still be in the stream. They must be gone before this one may vanish. */
  readonly below: readonly number[];
  /** An older record may lie below a ready key; the next record removes it. */
  readonly recordBelow: boolean;
  /** What has to be written elsewhere because of this change. It must be done before this state may vanish. */
  readonly todo: readonly Todo[];
}

/** A lease's fence is the sequence of its message times this: earlier versions used the fences between, and fences must not fall. */
export const FENCES_PER_MESSAGE = 64;

export interface StateLease {
  /** 0: that of this very message. */
  readonly fence: number;
  readonly session: string;
  readonly worker: string;
  readonly since: number;
  readonly leaseMs: number;
  /** Of the claim or hold that made it, to know it again when the reply was lost. */
  readonly nonce: string;
  readonly progress: number | undefined;
  /** Of the item that runs. */
  readonly cancelRequested: boolean;
  /** How many items it covers: the one that runs, which is the first that the key carries, and those of its run behind it. */
  readonly covered: number;
  /** What makes those of them unique that end as cancelled with the lease, if they are not begun. */
  readonly toCancel: readonly string[];
}

export interface KeyItem {
  /** Made by the submitter, to know the item again when a reply was lost. */
  readonly unique: string;
  /** Undefined: named after its key and its place. */
  readonly id: string | undefined;
  /** Its place: the sequence of the message that brought it. 0: of this very message. */
  readonly place: number;
  readonly level: number;
  readonly attempts: number;
  readonly submittedAt: number;
  readonly payload: Payload;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly keepMs: number;
  /** Submitted with mode latest: a newer one may take its place as long as it has not started. */
  readonly replaceable: boolean;
  /** End of its back-off. */
  readonly dueAt: number | undefined;
  /** The last few of its attempts that came to nothing. Undefined: none, as with by far the most. */
  readonly tried: Attempts | undefined;
  /** How many of its attempts ended with a lost lease. */
  readonly losses: number;
}

export type Todo =
  /** The item ended, and is remembered. */
  | { readonly type: "ended"; readonly item: KeyItem; readonly outcome: Outcome }
  | { readonly type: "dead"; readonly item: KeyItem; readonly at: number; readonly failure: Failure }
  /** The item steps aside until it is due. */
  | { readonly type: "later"; readonly item: KeyItem; readonly dueAt: number }
  /** The key is to be looked at again when its back-off is over. */
  | { readonly type: "wake"; readonly dueAt: number };

export const NOTHING: KeyState = {
  kind: "idle",
  nonce: "",
  items: [],
  taken: [],
  takenLeft: 0,
  cut: [],
  announced: 0,
  more: false,
  line: Number.MAX_SAFE_INTEGER,
  paused: false,
  alone: 0,
  lease: undefined,
  wanted: [],
  below: [],
  recordBelow: false,
  todo: [],
};

/** A state with the sequence of its message; 0 when there is none. */
export interface Seen {
  readonly sequence: number;
  readonly state: KeyState;
}

export const UNSEEN: Seen = { sequence: 0, state: NOTHING };

/** An item that stands in the line, and where. */
export interface Waiting {
  readonly sequence: number;
  readonly item: KeyItem;
}

/** How many of the items that a key carries are its holder's, from the first on. */
export function coveredOf({ kind, lease }: KeyState): number {
  return kind === "running" ? (lease?.covered ?? 1) : 0;
}

/** Consumers deliver a key by the message that made it ready; a record can say more about it afterwards. */
export function isRecord({ kind, announced }: KeyState): boolean {
  return kind !== "ready" || announced !== 0;
}
