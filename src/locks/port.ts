/**
 * The seam between locks and the place where they are kept. Whatever passes the locks' conformance suite can stand behind
 * `baton.lock`, `baton.elect` and `baton.each`: the engines, and stores that only know locks.
 *
 * Rules that hold for every method:
 * - A promise that rejects means that nothing changed, with one exception: `OutcomeUnknown` says that the reply was
 *   lost and the change may or may not have happened. Repeating the call is always safe.
 * - Nothing waits by polling. A waiter may look at its store once per lease of the holder, to see whether it still lives.
 */
import type { Instant } from "../domain/clock.ts";

export interface Locks {
  /** The name in `docs/locks/`: memory, sqlite, nats, consul. */
  readonly name: string;
  readonly limits: LockLimits;

  /** Opens the life that locks hang on. One sign of life keeps them all. */
  openSession(request: SessionRequest): Promise<Session>;

  /** A sign of life. Undefined: the session is over, and everything under it is lost, also when nobody took it yet. */
  renewSession(session: Session): Promise<Instant | undefined>;

  /** Ends the session and frees what it holds and where it waits, at once and without a delay after loss. */
  closeSession(session: Session): Promise<void>;

  /**
   * Takes one of the lock's slots, in the order of arrival where `limits.fair` says so. Waits without polling until it has one or
   * `signal` fires; a signal that has fired before makes it a try. A hold that raced with the signal is still
   * returned: none is ever made that nobody hears of. Two calls under one session exclude each other like strangers.
   * Rejects with `SessionLost` when the session ends before.
   */
  acquire(request: AcquireRequest): Promise<AcquireResult>;

  /** Lets go. False: it was not held any more, and nothing changed. */
  release(request: ReleaseRequest): Promise<boolean>;

  /** How the lock stands. Undefined: nobody holds it, waits for it or is kept from it. */
  read(name: string): Promise<LockReport | undefined>;

  /** Calls back with how the lock stands now, and after every change; changes in quick succession may be reported as one. */
  watch(request: WatchRequest): Promise<void>;

  /** All locks that are held, waited for, delayed or retired, by name. */
  list(): Promise<readonly LockReport[]>;

  /** Of records that cannot be read. Nothing is done before a repair is run. Left out where there is nothing of that kind. */
  repairs?(): Promise<readonly LockRepair[]>;

  /** Ends waiting calls and lets go of the store. Sessions are left to run out. */
  close(): Promise<void>;
}

/** What the store can keep. Requests beyond it are refused with `InvalidInput`, never bent. */
export interface LockLimits {
  readonly shortestLeaseMs: number;
  readonly longestLeaseMs: number;
  /** What somebody can do who needs a lease beyond these bounds. */
  readonly leaseAdvice?: string;
  readonly longestDelayMs: number;
  readonly mostSlots: number;
  /** Those that wait are served in the order in which they came. */
  readonly fair: boolean;
}

export interface SessionRequest {
  /** For people: host, process, what for. */
  readonly owner: string;
  readonly leaseMs: number;
  /** What becomes of a lock's data when the session that held it runs out: kept for whoever looks, or removed. */
  readonly expiry: "release" | "delete";
}

export interface Session {
  readonly id: string;
  readonly owner: string;
  readonly leaseMs: number;
  /** Read from this process's clocks before the session was asked for: its first deadline counts from here. */
  readonly since: Instant;
  /** What the store needs to find the session again. Nobody else looks inside. */
  readonly handle: unknown;
}

export interface AcquireRequest {
  readonly session: Session;
  readonly name: string;
  /** How many may hold the lock at a time. All who use a name must agree: others are refused with `InvalidInput`. */
  readonly slots: number;
  /** After a holder vanished without letting go, nobody gets its slot for this long. Not after a release. */
  readonly delayAfterLossMs: number;
  /** Shown to whoever looks at the lock: an address, a version. At most 4 KiB of text. */
  readonly data?: string;
  readonly signal: AbortSignal;
  /**
   * Called once if the store no longer has the hold although its session may live: somebody removed it from the store by other
   * means. It may come before `acquire` has answered, never after `release` was called. A store that cannot tell at once looks with
   * each sign of life.
   */
  readonly lost?: () => void;
  /**
   * Called once if something that Baton did not write turns up at the lock's place while it is held, with the names of it. What was there
   * before is said in `LockHold`. A store where nobody else locks never calls it.
   */
  readonly foreign?: (found: readonly string[]) => void;
}

/** `held`: by others. `delayed`: after a loss. `retired`: the work that it protected is done. */
export type AcquireResult =
  | { readonly ok: true; readonly hold: LockHold }
  | { readonly ok: false; readonly why: "held" | "delayed" | "retired" };

export interface LockHold {
  readonly name: string;
  /** Greater than every earlier one of this name, for ever. */
  readonly fence: number;
  readonly session: Session;
  readonly handle: unknown;
  /** What stands at the lock's place in the store and was not written by Baton. Those who use it are not kept out by this hold. */
  readonly foreign?: readonly string[];
}

export interface ReleaseRequest {
  readonly hold: LockHold;
  /** The work that the lock protected is done: nobody is to get it again for this long. */
  readonly retireMs?: number;
}

export interface WatchRequest {
  readonly name: string;
  readonly changed: (report: LockReport | undefined) => void;
  /** Ends the watch; it resolves then. */
  readonly signal: AbortSignal;
}

export interface LockReport {
  readonly name: string;
  readonly slots: number;
  readonly holders: readonly HolderReport[];
  /** Undefined where the store cannot tell. */
  readonly waiting: number | undefined;
  /** Nobody gets a slot before, by the wall clock: after a loss, or because the work is done. */
  readonly delayedUntil?: number;
  readonly retiredUntil?: number;
  /** What the last holder left, when its session ran out with `expiry: "release"`. */
  readonly lastData?: string;
  /** What stands at the lock's place in the store and was not written by Baton. */
  readonly foreign?: readonly string[];
  /** Why nobody can take or free it: its record cannot be read. */
  readonly damage?: string;
}

/** A record that cannot be read, and what can be done about it. */
export interface LockRepair {
  readonly subject: string;
  readonly detail: string;
  readonly action: string;
  run(): Promise<void>;
}

export interface HolderReport {
  readonly owner: string;
  readonly session: string;
  readonly fence: number;
  /** When it got the lock, by the wall clock of whoever wrote it down. */
  readonly since: number;
  readonly data?: string;
}
