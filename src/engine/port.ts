/**
 * The seam between Baton and the place where its state lives. An engine passes the conformance suite
 * (`batonq/conformance`); whatever passes it can stand behind every face of the product.
 *
 * Rules that hold for every method:
 * - A promise that resolves means that the change is durable as the engine's page says, and visible to all.
 * - A promise that rejects means that nothing changed, with one exception: `OutcomeUnknown` says that the reply was
 *   lost and the change may or may not have happened. Repeating the call is always safe.
 * - Entries of one batch are independent: one that is refused does not touch the others. Entries for one key
 *   take effect in the order given, and so do calls made one after the other through one handle.
 * - `declare` has resolved for a queue on this handle before any other method names that queue, except `queues` and `deleteQueue`. If not, and
 *   when the queue was deleted since, the call is refused with `QueueMissing`, and `queues` does not list it. Leases on a deleted queue are lost.
 */
import type { Instant } from "../domain/clock.ts";
import type { BatonError } from "../domain/errors.ts";
import type { Failure } from "../domain/failure.ts";
import type { Payload } from "../domain/payload.ts";
import type { Mode } from "../domain/settings.ts";
import type { Locks } from "../locks/port.ts";

export interface Engine {
  /** The name in `docs/engines/`: memory, sqlite, … */
  readonly name: string;

  /** It can accept items within a transaction of the application (`Submission.transaction`). Others are never asked to. */
  readonly transactions?: boolean;

  /** It grants runs of more than one item. Others are never asked to, and every run of theirs has one. */
  readonly runs?: boolean;

  /**
   * Makes the queue known. Levels are stored by the first caller; a later one may leave them out, and is refused
   * with `LevelsDiffer` when it names others.
   */
  declare(request: DeclareRequest): Promise<QueueDeclaration>;

  /**
   * Accepts items. Atomic per item. An id that was used before, and is still remembered, gives the first receipt
   * back with `duplicate` set and changes nothing, whatever else the submission says.
   */
  submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]>;

  /**
   * Takes up to `max` ready keys, each with a run of its next items, under new leases. Resolves as soon as there is at least
   * one, without polling; with none only when `signal` fires or has fired before. A grant that raced with the signal is still returned:
   * no lease is ever made that nobody hears of.
   *
   * Most urgent level first, then the key that became ready first, except that a worker may go on with the key that it
   * just settled for a moment (tens of milliseconds at most) while nothing more urgent is ready. Keys whose lease ran out are ready again. The attempt
   * counts up with each grant. Because a claim waits, calls made after it may take effect before it.
   *
   * A run has up to `items` items: the first that waits, and those behind it at its level that were never tried. An engine may grant fewer. The lease
   * covers all of them, and the attempt counts for the first; the others are covered, not begun. While the lease lasts, only its holder ends what it
   * covers, and whatever arrives joins behind it. When the lease is lost, the first covered item counts as lost (`Item.losses`), and until as many
   * items of the key have ended as the lease covered, runs of the key have one item: so one item that kills its process costs no neighbour an attempt.
   */
  claim(request: ClaimRequest): Promise<readonly Grant[]>;

  /**
   * Takes a lease on one key without an item, when nothing runs on it and nobody holds it. Waits without polling until it
   * has it; undefined when `signal` fires first, and a signal that has fired before makes it a try. However many items wait for the
   * key, a hold that waits comes to its turn when the running one ends. A hold that raced with the signal is still returned.
   */
  hold(request: HoldRequest): Promise<Lease | undefined>;

  /**
   * Moves deadlines. A lease that ran out is lost, also when nobody has taken the key yet. With `ended`, it ends these items of the run, counts the
   * attempt of the one behind them, which runs now, and gives back what is behind that one.
   */
  renew(renewals: readonly Renewal[]): Promise<readonly RenewResult[]>;

  /**
   * Ends leases, each with the item that ran last, and with those of its run that ended before it (`ended`). What the lease covered behind that item
   * goes back untouched. `lost` means that the lease was not the current one, or had run out, and that nothing changed.
   * The key's next item is ready in the same step, or granted in it (`Settlement.next`). An attempt that came to nothing is noted with its item in that step too (`AttemptReport`),
   * and so is one whose lease ran out, when it is found to have done so. All settlements of a call end before a key goes on (`Settlement.next`).
   */
  settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]>;

  /** The item, wherever it is now. Undefined: never seen, or ended and not remembered. */
  find(request: ItemRequest): Promise<ItemReport | undefined>;

  /**
   * How the item ended, as soon as it has. Undefined when `signal` fires first, or when the item is not remembered: at
   * once, or when it has ended.
   */
  outcome(request: OutcomeRequest): Promise<Outcome | undefined>;

  /**
   * Takes back an item. One that waits is `cancelled` now. One that runs, or is covered by a lease, is `requested`: its worker learns it from its
   * next renewal, and if it is not begun, it ends as cancelled with the lease. `ended` and `missing` changed nothing.
   */
  cancel(request: ItemRequest): Promise<CancelResult>;

  /** Stops handing out a queue, or one key of it, or goes on. What runs is left alone. Items are still accepted. */
  pause(request: PauseRequest): Promise<void>;

  /**
   * Removes a queue with all that is kept of it: levels, pauses, what is remembered of ended items. False: there was none. Refused with
   * `QueueNotEmpty` while it has items, dead letters or leases; with `force` these go too. In one step for others: an item that is submitted
   * meanwhile either keeps the queue from being deleted, or is refused, or is deleted by force. Calls that wait end with `QueueMissing`, in
   * other processes within seconds. In a queue that is made anew under the name fences go on above those of before.
   */
  deleteQueue(request: DeleteQueueRequest): Promise<boolean>;

  /** All queues, or the one named, with their counts. Cheap whatever the backlog. */
  queues(request: { readonly queue?: string }): Promise<readonly QueueReport[]>;

  /** A page of the keys that have an item, a lease or a pause, in a stable order. */
  keys(request: KeyPageRequest): Promise<readonly KeyReport[]>;

  /** A page of the dead letters, oldest first. */
  dead(request: PageRequest): Promise<readonly DeadReport[]>;

  /** Submits dead letters anew, behind what waits, with their attempts forgotten; or drops them. Returns how many. */
  revive(request: ReviveRequest): Promise<number>;

  /** The locks that live in the same store; the same object each time. `close` closes them too. */
  locks(): Locks;

  /** What an operator should know about this store: versions, durability, damage, things that linger. */
  check(): Promise<readonly Finding[]>;

  /** Damage of which `check` tells and that can be repaired. Nothing is done before a repair is run. Left out where there is none of that kind. */
  repairs?(): Promise<readonly Repair[]>;

  /** What of that whoever begins to work should hear of, as far as it is known without asking the store: what a power loss may take. */
  readonly caution?: Finding | undefined;

  /**
   * Calls the listener again and again while the connection to the store is gone for longer than a moment, with the error that says so, and with nothing
   * when it is there again. For engines whose claims wait through an outage. Left out where they fail: then it is they who tell.
   */
  onAway?(listener: (away: BatonError | undefined) => void): void;

  /** Ends waiting calls, finishes those under way, lets go of everything. Leases are left to run out. */
  close(): Promise<void>;
}

export interface DeclareRequest {
  readonly queue: string;
  readonly levels?: readonly string[];
}

export interface QueueDeclaration {
  readonly levels: readonly string[];
}

export interface Submission {
  readonly queue: string;
  readonly key: string;
  /** Chosen by the submitter. Without one the engine gives one that begins with `@`. */
  readonly id?: string;
  readonly level: string;
  readonly payload: Payload;
  /** Opaque text that travels with the item: trace context, attributes. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The item arrives when this has passed. Until then it blocks nobody. */
  readonly delayMs: number;
  readonly mode: Mode;
  readonly keyLimit: number;
  readonly queueLimit: number;
  /** How long the item is remembered after it ended. Zero: not at all, and nothing is paid for it. */
  readonly keepMs: number;
  /** Accept it within this transaction of the application: if that commits, and only then. */
  readonly transaction?: Transaction;
}

/** A transaction of the application, in the same database. Rows come back as they are, or in `rows`. */
export interface Transaction {
  query(text: string, values: unknown[]): Promise<unknown>;
}

export interface Accepted {
  readonly id: string;
  readonly key: string;
  readonly level: string;
  readonly at: number;
  readonly duplicate: boolean;
  /** Mode latest: the items that this one replaced. */
  readonly replaced: readonly string[];
}

export type SubmitResult =
  | { readonly ok: true; readonly accepted: Accepted }
  | { readonly ok: false; readonly error: BatonError };

export interface ClaimRequest {
  readonly queue: string;
  readonly worker: string;
  readonly max: number;
  readonly leaseMs: number;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
  /** So long at most until the signal fires, where that is known: what an engine leaves waiting at its store ends a little before. */
  readonly waitMs?: number;
  readonly lost?: LostListener;
  /** The most items of a run. Left out: one. */
  readonly items?: number;
}

export interface HoldRequest {
  readonly queue: string;
  readonly key: string;
  readonly worker: string;
  readonly leaseMs: number;
  readonly signal: AbortSignal;
  readonly lost?: LostListener;
}

/**
 * Called when the engine hears that the key of a lease went to somebody else. A hint: it may come late, never, more than once or in error, as what
 * carries it may be open to others. The holder asks by renewing, and finds out by its own clock in any case.
 */
export type LostListener = (lease: Lease) => void;

export interface Lease {
  readonly queue: string;
  readonly key: string;
  readonly fence: number;
  /** Read from this process's clocks before the write that made or moved the lease: the deadline counts from here. */
  readonly since: Instant;
  /** What the engine needs to find the lease again. Nobody else looks inside. */
  readonly handle: unknown;
}

export interface Item {
  readonly id: string;
  readonly queue: string;
  readonly key: string;
  readonly level: string;
  readonly payload: Payload;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** Somebody else has written over its headers: whoever asks for them is told this. */
  readonly damage?: string;
  readonly submittedAt: number;
  /** 1 for the first. */
  readonly attempt: number;
  /** How many of its attempts ended with a lost lease, if any: perhaps it is the item that kills its process. */
  readonly losses?: number;
}

export interface Grant {
  readonly lease: Lease;
  /** The first of the run, whose attempt is counted. */
  readonly item: Item;
  /** The others that the lease covers, in order. Their attempt is the one that counts if they are begun. Left out: there are none. */
  readonly behind?: readonly Item[];
  /** More of the key waits behind the run, so that it pays to ask for `Settlement.next`. A hint: it may change at any time. */
  readonly more?: true;
}

/** An item of a run that ended while the run went on. One that the lease does not cover any more was reported before, and nothing happens to it. */
export interface EndedItem {
  readonly id: string;
  readonly ending: Extract<Ending, { readonly type: "done" | "cancelled" }>;
}

export interface Renewal {
  readonly lease: Lease;
  readonly leaseMs: number;
  /** Shown by inspection from now on. */
  readonly progress?: number;
  /** Those of the run that ended before the one that runs now, in order. */
  readonly ended?: readonly EndedItem[];
}

export type RenewResult =
  | { readonly ok: true; readonly since: Instant; readonly cancelRequested: boolean }
  | { readonly ok: false };

export type Ending =
  /** `resultMissing`: why there is no result, where the work had one. Kept with the outcome in its place. */
  | { readonly type: "done"; readonly result?: Payload; readonly resultMissing?: string }
  /**
   * Try again after the delay. `keep`: what waits behind it on its key, at its level or below, waits too. `yield`: these go on meanwhile, and it comes
   * back before them; whether the one that was to begin next, and has not, still goes before it is the engine's.
   */
  | { readonly type: "retry"; readonly delayMs: number; readonly place: "keep" | "yield"; readonly failure: Failure }
  | { readonly type: "dead"; readonly failure: Failure }
  | { readonly type: "cancelled" }
  /** Give the item back in its place without counting the attempt; or let go of a hold. */
  | { readonly type: "release" };

export interface Settlement {
  readonly lease: Lease;
  /** Those of the run that ended before the last one, in order. */
  readonly ended?: readonly EndedItem[];
  /** Of the item behind them. `release`: it was not begun, or is not to count. */
  readonly ending: Ending;
  /** Where the item has ended: go on with the key, if that is fair. An engine whose grants never say `more` is not asked to. */
  readonly next?: NextRequest;
}

/**
 * Asks for the key's next run together with the end of the one before, in one step. The engine grants it under a new lease, with a new fence, or
 * leaves it out: where the key or the queue is paused, nothing is ready to run, something more urgent is ready on another key, a hold waits for the
 * key, or the worker has gone on with it for `MOST_TURN_MS` since a claim brought it.
 */
export interface NextRequest {
  readonly worker: string;
  readonly leaseMs: number;
  /** The most items of the run. Left out: one. */
  readonly items?: number;
  readonly lost?: LostListener;
}

/** A worker may go on with a key for so long; then it is the turn of the keys that are ready. */
export const MOST_TURN_MS = 50;

export type SettleResult =
  | "settled"
  | "lost"
  /** Settled, and the key goes on. */
  | Grant;

export interface ItemRequest {
  readonly queue: string;
  readonly id: string;
}

export interface OutcomeRequest extends ItemRequest {
  readonly signal: AbortSignal;
}

export interface PauseRequest {
  readonly queue: string;
  readonly key?: string;
  readonly paused: boolean;
}

export interface DeleteQueueRequest {
  readonly queue: string;
  readonly force: boolean;
}

export interface PageRequest {
  readonly queue: string;
  /** Where the last page ended: the key, or the id of the dead letter. */
  readonly after?: string;
  readonly limit: number;
}

export interface KeyPageRequest extends PageRequest {
  /** Only keys under a lease: what runs, and what is held. Cheap however many others there are. */
  readonly leased?: boolean;
}

export interface ReviveRequest {
  readonly queue: string;
  /** Undefined: all of them. */
  readonly ids?: readonly string[];
  readonly action: "retry" | "drop";
}

export type CancelResult = "cancelled" | "requested" | "ended" | "missing";

export interface Outcome {
  readonly state: "done" | "dead" | "cancelled" | "replaced";
  readonly at: number;
  readonly attempt: number;
  readonly result?: Payload;
  /** Of what is done: it had a result, which was not kept, and why. */
  readonly resultMissing?: string;
  readonly failure?: Failure;
  /** Those of its attempts that came to nothing, as `ItemReport` has them; of a dead letter the last one too. */
  readonly attempts?: readonly AttemptReport[];
}

/** An attempt that came to nothing. */
export interface AttemptReport {
  /** `lost`: its lease ran out before it was settled. `released`: given back, which does not count; the next attempt takes its place here. */
  readonly end: "failed" | "lost" | "released";
  readonly attempt: number;
  /** When it ended. */
  readonly at: number;
  readonly worker: string;
  /** Of one that failed: what was said, cut to a line or two, and its code. */
  readonly failure?: Failure;
}

export interface RunningReport {
  readonly worker: string;
  readonly fence: number;
  readonly since: number;
  readonly deadline: number;
  /** 0 for a hold. */
  readonly attempt: number;
  readonly progress?: number;
  /** Undefined for a hold. */
  readonly id?: string;
}

export interface ItemReport {
  readonly id: string;
  readonly key: string;
  readonly level: string;
  readonly state: "waiting" | "delayed" | "running" | Outcome["state"];
  readonly attempt: number;
  readonly submittedAt: number;
  /** When a delayed item, or one that waits out its back-off, may run. */
  readonly dueAt?: number;
  readonly running?: RunningReport;
  /** Of an item that has not ended: how the last attempt failed that did, as its entry in `attempts` has it. */
  readonly failure?: Failure;
  /** The last few attempts that came to nothing, oldest first; left out when there are none. A dead letter that is tried again keeps them. */
  readonly attempts?: readonly AttemptReport[];
  readonly outcome?: Outcome;
}

export interface QueueReport {
  readonly queue: string;
  readonly paused: boolean;
  /** Most urgent first. */
  readonly levels: readonly { readonly level: string; readonly waiting: number }[];
  readonly waiting: number;
  readonly delayed: number;
  readonly running: number;
  readonly dead: number;
  /** What somebody else has done to it, in a sentence: something in the store cannot be read. The counts are of what can be. */
  readonly damage?: string;
}

export interface KeyReport {
  readonly key: string;
  /** `blocked`: its next item waits out a back-off. `idle`: only delayed items, or a pause. */
  readonly state: "ready" | "running" | "held" | "blocked" | "idle";
  readonly paused: boolean;
  readonly waiting: number;
  readonly delayed: number;
  readonly running?: RunningReport;
  /** Why nobody can work on it: how it stands cannot be read. It is reported as blocked. */
  readonly damage?: string;
}

export interface DeadReport {
  readonly id: string;
  readonly key: string;
  readonly level: string;
  readonly at: number;
  readonly attempt: number;
  readonly submittedAt: number;
  readonly failure: Failure;
  /** The last few attempts, oldest first, as `ItemReport` has them. Left out in letters of an older version. */
  readonly attempts?: readonly AttemptReport[];
  readonly payload: Payload;
}

/** Something in the store that is not as Baton writes it, and what can be done about it. */
export interface Repair {
  readonly subject: string;
  /** What is wrong. */
  readonly detail: string;
  /** What `run` does, and what it means for the work. */
  readonly action: string;
  /** Of what is removed, if anything is: so that nothing is lost for good. */
  readonly content?: Uint8Array;
  run(): Promise<void>;
}

export interface Finding {
  readonly severity: "ok" | "warning" | "error";
  readonly subject: string;
  readonly detail: string;
  readonly advice?: string;
}
