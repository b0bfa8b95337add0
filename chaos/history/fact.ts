/**
 * What the processes of a run write down, a line each, every process into a file of its own. What changes something
 * is written down twice: before it is asked for, because a process may be killed before it hears the answer, and when the answer is there.
 */

/** `ok`: it happened. `fail`: it did not happen. `unknown`: nobody can say, because the answer was lost. */
export type Outcome = "ok" | "fail" | "unknown";

export type Fact =
  | RunFact
  | SubmitSent
  | SubmitAnswered
  | CancelSent
  | CancelAnswered
  | Granted
  | Renewed
  | SettleSent
  | SettleAnswered
  | EffectSent
  | EffectAnswered
  | Judged
  | Paused
  | FaultBegan
  | FaultEnded
  | Drained
  | DeadLetters
  | Final
  | Exited;

export interface Entry {
  /** Milliseconds by the monotonic clock of the host. */
  readonly at: number;
  /** The process that writes. */
  readonly by: string;
  /** Counts the lines of the process, so that one that is missing is missed. Histories written by hand have none. */
  readonly line?: number;
}

/** The rules of the run. */
export interface RunFact extends Entry {
  readonly type: "run";
  readonly store: string;
  readonly seed: number;
  readonly leaseMs: number;
  /** What a holder keeps in hand: its local deadline is so much earlier than the end of its lease. */
  readonly marginMs: number;
  /** Most urgent first. */
  readonly levels: readonly string[];
  readonly control?: string;
}

export interface SubmitSent extends Entry {
  readonly type: "submit-sent";
  /** Number of the call, within its process; one call may submit several items, in order. */
  readonly call: number;
  readonly item: string;
  readonly id?: string;
  readonly key: string;
  readonly level: string;
}

export interface SubmitAnswered extends Entry {
  readonly type: "submit";
  readonly call: number;
  readonly item: string;
  readonly outcome: Outcome;
  readonly receipt?: {
    readonly id: string;
    readonly key: string;
    readonly level: string;
    readonly duplicate: boolean;
  };
  readonly error?: string;
}

/** Somebody takes an item back. */
export interface CancelSent extends Entry {
  readonly type: "cancel-sent";
  readonly item: string;
}

export interface CancelAnswered extends Entry {
  readonly type: "cancel";
  readonly item: string;
  /** `requested`: it runs, and its worker will hear of it. Undefined: the answer was lost, or it did not happen. */
  readonly result?: "cancelled" | "requested" | "ended" | "missing";
}

/** A worker heard that it has a key. */
export interface Granted extends Entry {
  readonly type: "grant";
  /** Read before the lease was asked for: the local deadline counts from here. */
  readonly since: number;
  readonly item: string;
  /** What the store calls it. */
  readonly id: string;
  readonly key: string;
  readonly level: string;
  readonly fence: number;
  readonly attempt: number;
  /** The others that the lease covers, in order. Left out: there are none. */
  readonly behind?: readonly { readonly item: string; readonly id: string; readonly attempt: number }[];
}

/** An item of a run that ended before the one that ran then. */
export interface EndedItem {
  readonly item: string;
  readonly ending: string;
}

export interface Renewed extends Entry {
  readonly type: "renew";
  readonly sentAt: number;
  readonly key: string;
  readonly fence: number;
  readonly outcome: Outcome;
  readonly ended?: readonly EndedItem[];
  /** Where the deadline counts from now. */
  readonly since?: number;
}

interface SettleEntry extends Entry {
  readonly item: string;
  readonly ended?: readonly EndedItem[];
  readonly key: string;
  readonly fence: number;
  readonly ending: string;
}

export interface SettleSent extends SettleEntry {
  readonly type: "settle-sent";
  /** Of an attempt that failed: it is not tried again before so long. */
  readonly delayMs?: number;
}

export interface SettleAnswered extends SettleEntry {
  readonly type: "settle";
  readonly outcome: Outcome;
}

interface EffectEntry extends Entry {
  readonly item: string;
  readonly key: string;
  readonly fence: number;
  readonly step: "began" | "went on" | "finished";
}

/** A handler is about to change something in the world, and shows its fence. */
export interface EffectSent extends EffectEntry {
  readonly type: "effect-sent";
}

export interface EffectAnswered extends EffectEntry {
  readonly type: "effect";
  readonly outcome: Outcome;
}

/** The register of the key decided about an effect. Written by the register, in the order in which it decided. */
export interface Judged extends EffectEntry {
  readonly type: "judged";
  readonly worker: string;
  readonly accepted: boolean;
  /** The highest fence that it had seen before. */
  readonly highest: number;
}

/** A process noticed that it stood still, from `since` until `at`. */
export interface Paused extends Entry {
  readonly type: "paused";
  readonly since: number;
  readonly why: "blocked" | "stood still";
}

export interface FaultBegan extends Entry {
  readonly type: "fault";
  readonly number: number;
  readonly kind: string;
  /** The processes that it hits. */
  readonly hits: readonly string[];
  /** In words. */
  readonly story: string;
}

export interface FaultEnded extends Entry {
  readonly type: "fault-over";
  readonly number: number;
}

/** No more was submitted, and so many items were left when nothing more was waited for. */
export interface Drained extends Entry {
  readonly type: "drained";
  readonly left: number;
}

/** What the store says about an item when all is over. */
export interface Final extends Entry {
  readonly type: "final";
  readonly item: string;
  readonly state: string;
}

/** The items that the store keeps as dead letters when all is over. */
export interface DeadLetters extends Entry {
  readonly type: "dead-letters";
  readonly items: readonly string[];
}

/** A process ended, and nobody had killed it. */
export interface Exited extends Entry {
  readonly type: "exited";
  readonly process: string;
  /** Undefined: it ended as it should. */
  readonly trouble?: string;
}
