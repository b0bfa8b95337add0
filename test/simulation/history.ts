import type { CancelResult, EndedItem, Ending, SettleResult } from "../../src/engine/port.ts";
import type { Mode } from "../../src/domain/settings.ts";

/**
 * What happened in a run, in order, each entry with its true time. The checker sees this and nothing else.
 *
 * `store-…` entries stand where the store did the thing, and carry its answer; without an answer it was not done,
 * because the connection was closed. All others are what a process saw, did, or suffered. A lease has a number of its own here, because a fence may be what is wrong.
 */
export type Happening = { at: number } & (StoreHappening | ProcessHappening | FaultHappening);

export type StoreHappening =
  | { type: "store-submit"; process: string; wall: number; entries: readonly StoreSubmission[] }
  | { type: "store-claim"; process: string; claim: number; worker: string; max: number; items: number }
  | { type: "store-claim-over"; claim: number }
  | {
      type: "store-grant";
      process: string;
      claim: number;
      worker: string;
      lease: number;
      key: string;
      fence: number;
      token: number;
      id: string;
      level: string;
      attempt: number;
      losses: number;
      /** The others that the lease covers, in order. */
      behind: readonly GrantedItem[];
      leaseMs: number;
      wall: number;
    }
  | {
      type: "store-hold";
      process: string;
      key: string;
      leaseMs: number;
      refused?: boolean;
      lease?: number;
      fence?: number;
    }
  | {
      type: "store-renew";
      process: string;
      lease: number;
      key: string;
      leaseMs: number;
      ended: readonly Ended[] | undefined;
      ok?: boolean;
    }
  | {
      type: "store-settle";
      process: string;
      lease: number;
      key: string;
      /** Items of its run that ended before the last. */
      ended: readonly Ended[];
      ending: Ending["type"];
      delayMs: number;
      place: "keep" | "yield";
      wall: number;
      result?: SettleResult;
    }
  | { type: "store-cancel"; process: string; id: string; result?: CancelResult }
  | { type: "store-pause"; process: string; key: string | undefined; paused: boolean; done?: boolean };

/** An item as a store hands it out. */
export interface GrantedItem {
  readonly token: number;
  readonly id: string;
  readonly level: string;
  readonly attempt: number;
  readonly losses: number;
}

export interface Ended {
  readonly id: string;
  readonly ending: EndedItem["ending"]["type"];
}

export interface StoreSubmission {
  readonly token: number;
  readonly id: string | undefined;
  readonly key: string;
  readonly level: string;
  readonly delayMs: number;
  readonly mode: Mode;
  readonly kept: boolean;
  answer?: SubmitAnswer;
}

export type SubmitAnswer =
  | {
      readonly ok: true;
      readonly id: string;
      readonly key: string;
      readonly level: string;
      readonly acceptedAt: number;
      readonly duplicate: boolean;
      readonly replaced: readonly string[];
    }
  | { readonly ok: false; readonly code: string };

/** How a handler keeps itself from working under a lost lease: it asks, it listens, or it does neither. */
export type Guard = "check" | "signal" | "careless";

export type HandlerEnd = "returned" | "threw" | "fatal" | "later" | "stopping" | "cancelled" | "lost" | "timeout";

export type ProcessHappening =
  | { type: "submit"; process: string; call: number; token: number; id: string | undefined; key: string; level: string }
  | { type: "submitted"; process: string; call: number; token: number; answer: SubmitAnswer }
  | { type: "submit-unknown"; process: string; call: number; token: number }
  /** A grant, or a hold, reached its process. `since` is the true time of the clock reading, `sinceWall` that reading. */
  | {
      type: "granted";
      process: string;
      lease: number;
      key: string;
      fence: number;
      leaseMs: number;
      since: number;
      sinceWall: number;
    }
  | {
      type: "renewed";
      process: string;
      lease: number;
      ok: boolean;
      ended: readonly Ended[] | undefined;
      cancelRequested: boolean;
      since: number;
      sinceWall: number;
    }
  /** It asks for a renewal. `ended`: and says so much of its run. */
  | { type: "renewing"; process: string; lease: number; ended: readonly Ended[] | undefined }
  | { type: "settling"; process: string; lease: number; ended: readonly Ended[]; ending: Ending["type"] }
  /** An answer came to it. */
  | { type: "settle-answered"; process: string; lease: number }
  /** No answer came to it. */
  | { type: "settle-unknown"; process: string; lease: number }
  | { type: "started"; process: string; lease: number; token: number; attempt: number; guard: Guard }
  | { type: "effect"; process: string; lease: number; key: string; fence: number; guard: Guard; wall: number }
  | { type: "finished"; process: string; lease: number; token: number; how: HandlerEnd }
  | { type: "stop"; process: string; worker: string; graceMs: number }
  | { type: "stopped"; process: string; worker: string; abandoned: number }
  | { type: "outcome"; process: string; id: string; state: string }
  | { type: "told"; process: string; what: string; key: string | undefined; id: string | undefined };

export type FaultKind =
  | "request lost"
  | "reply lost"
  | "duplicated"
  | "slow"
  /** A slow request arrived, and with it all those that were sent after it. */
  | "late"
  | "crash"
  | "pause"
  | "resume"
  | "partition"
  | "heal"
  | "clock step";

export type FaultHappening =
  /** `store` as process: its wall clock was stepped. */
  | { type: "fault"; process: string; kind: FaultKind; detail: string }
  | { type: "process"; process: string; detail: string }
  | { type: "calm" };

/** What the store said when all was over. */
export interface LastWords {
  readonly drained: boolean;
  readonly counts: {
    readonly waiting: number;
    readonly delayed: number;
    readonly running: number;
    readonly dead: number;
  };
  readonly keys: readonly string[];
  readonly dead: readonly string[];
  /** Per id: state by `find`, and state by `outcome`. */
  readonly items: ReadonlyMap<string, { readonly found: string | undefined; readonly outcome: string | undefined }>;
  /** Stops that were begun by a process that lives, and did not end. */
  readonly unfinished: readonly string[];
}

export class History {
  readonly happenings: Happening[] = [];

  add<T extends Happening>(happening: T): T {
    this.happenings.push(happening);
    return happening;
  }
}
