/**
 * What the store keeps: plain records, because queues, keys, items and leases refer to one another.
 * `moves.ts` says how they change.
 */
import type { LevelChooser } from "../../domain/level.ts";
import type { Payload } from "../../domain/payload.ts";
import type { Attempts } from "../../engine/attempts.ts";
import type { ClaimRequest, Grant, HoldRequest, Lease, LostListener, Outcome } from "../../engine/port.ts";
import type { Heap, Ranked } from "./heap.ts";
import type { Line, Linked } from "./line.ts";

/**
 * An item is in one phase:
 *   delayed → waiting → running → ended, or dead (a dead letter, which can wait again)
 * A waiting item is the head of its key, or stands in the lane of its level behind the head.
 */
export type Phase = "delayed" | "waiting" | "running" | "dead" | "ended";

export interface StoredItem extends Ranked, Linked<StoredItem> {
  readonly id: string;
  readonly level: number;
  readonly keepMs: number;
  readonly submittedAt: number;
  readonly headers: Readonly<Record<string, string>> | undefined;
  key: StoredKey;
  /** Order of arrival; decides between items that are due in the same millisecond. */
  sequence: number;
  payload: Payload;
  phase: Phase;
  attempts: number;
  /** The last few of them that came to nothing. */
  tried: Attempts;
  /** Not before this wall time: a delay or a back-off. */
  dueAt: number | undefined;
  /** A delayed item that was tried before goes to the front of its lane when it comes back. */
  yielded: boolean;
  cancelRequested: boolean;
  /** How many of its attempts ended with a lost lease. */
  losses: number;
  /** It waits behind the item that runs, and the same lease covers it. */
  covered: boolean;
  outcome: Outcome | undefined;
  /** Wall time at which an ended item, and its id, are forgotten. */
  forgetAt: number;
  /** Those who wait for the outcome. */
  watchers: Set<(outcome: Outcome | undefined | Promise<never>) => void> | undefined;
}

/**
 * A key is
 *   idle: no head · ready: its head may run · blocked: its head waits out a back-off
 *   running: leased, the head runs · held: leased without an item; the head, if any, stays head
 * A key without head and without lease has empty lanes.
 */
export interface StoredKey extends Ranked {
  readonly name: string;
  readonly queue: StoredQueue;
  head: StoredItem | undefined;
  /** By level; made when first needed, because most keys have one item at a time. */
  readonly lanes: (Line<StoredItem> | undefined)[];
  readonly delayed: Line<StoredItem>;
  /** Items in phase waiting: the head unless it runs, and the lanes. */
  waiting: number;
  lease: StoredLease | undefined;
  paused: boolean;
  /** So many items must end one by one: a lease that covered as many was lost. */
  alone: number;
  /** Position in the ready order of the head's level. Kept while the key is leased, so that a release gets it back. */
  place: number;
  /** Wall time at which the key became ready. */
  readySince: number;
}

export interface StoredLease extends Ranked {
  readonly key: StoredKey;
  readonly fence: number;
  readonly worker: string;
  /** The item that runs. Undefined for a hold. */
  item: StoredItem | undefined;
  /** The others of its run, in order. They wait in the lane of the level, at its front. */
  behind: StoredItem[];
  readonly since: number;
  /** Monotonic: when its worker got the key from a claim. It may have gone on with it since. */
  readonly turnSince: number;
  /** Monotonic. The lease is over when the clock shows this. */
  deadline: number;
  /** The same moment by the wall clock, for people. */
  deadlineWall: number;
  progress: number | undefined;
  /** Who is to be told when it runs out, and the lease as they know it. */
  holder: { readonly lease: Lease; readonly lost: LostListener } | undefined;
}

export interface StoredQueue {
  readonly name: string;
  /** Most urgent first. Inside the store a level is its index here. */
  readonly levels: readonly string[];
  readonly agenda: Agenda;
  readonly keys: Map<string, StoredKey>;
  /** Live items, dead letters, and ended items that are remembered. */
  readonly items: Map<string, StoredItem>;
  /** Per level, the keys that may be handed out now, by their place. */
  readonly ready: readonly Heap<StoredKey>[];
  /** Oldest first. */
  readonly deadLetters: Line<StoredItem>;
  readonly claims: Line<WaitingClaim>;
  readonly holds: Line<WaitingHold>;
  readonly counts: Record<Phase, number>;
  readonly waitingPerLevel: number[];
  paused: boolean;
}

/** A claim that found nothing ready, and stands in line for what comes. */
export interface WaitingClaim extends Linked<WaitingClaim> {
  readonly request: ClaimRequest;
  readonly chooser: LevelChooser;
  /** Takes it out of the line and answers the caller. */
  answer(grants: readonly Grant[] | Promise<never>): void;
}

/** A hold whose key was leased, and that stands in line for it. */
export interface WaitingHold extends Linked<WaitingHold> {
  readonly request: HoldRequest;
  /** Takes it out of the line and answers the caller. */
  answer(lease: Lease | Promise<never>): void;
}

/**
 * Everything in a store that happens by itself when its time comes, and the counters that only rise.
 * Delays and back-offs go by the wall clock, because they are promises to people; leases go by the monotonic
 * clock, because stepping the wall clock must not end one early.
 */
export interface Agenda {
  readonly delayed: Heap<StoredItem>;
  /** Heads that wait out a back-off. */
  readonly blocked: Heap<StoredItem>;
  readonly leases: Heap<StoredLease>;
  /** Ended items, by when they are forgotten. */
  readonly remembered: Heap<StoredItem>;
  /** Queues in which something became ready, or a key that somebody waits to hold became free, during this turn. */
  readonly stirred: Set<StoredQueue>;
  lastNumber: number;
  lastFence: number;
}
