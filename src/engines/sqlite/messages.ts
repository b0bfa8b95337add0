import type { Instant } from "../../domain/clock.ts";
import type { Body } from "../../domain/payload.ts";
import type * as port from "../../engine/port.ts";
import type { RefusalCode } from "../../engine/submissions.ts";
import type { ErrorCode, QueueContents } from "../../domain/errors.ts";
import type { Cell } from "../../locks/register.ts";
import type { LostLease } from "../../wake/wake.ts";
import type { Synchronous } from "./database.ts";

/**
 * What crosses between the application's thread and the store's. Tuples where there are many of a kind: a
 * structured clone writes the names of an object's fields again for each object.
 */
export interface ThreadData {
  readonly file: string;
  readonly synchronous: Synchronous;
  /** `own`, the default: the files beside the store. `foreign`: the application's thread tells others, and is told. */
  readonly wake?: "own" | "foreign";
  /** The application's signs of life, which the store's thread reads. */
  readonly pulse: SharedArrayBuffer;
}

/** What other processes, and whoever in this one, should hear of a transaction. */
export interface News {
  /** Ready keys that nobody here took. */
  readonly work: readonly (readonly [queue: string, count: number])[];
  /** Queues in which everybody who waits should look. */
  readonly stirred: readonly string[];
  readonly ended: readonly (readonly [queue: string, ids: readonly string[]])[];
  readonly lost: readonly LostLease[];
}

/** What consecutive submissions usually have in common, sent once for all of them. */
export interface SubmitTerms extends Pick<
  port.Submission,
  "queue" | "level" | "delayMs" | "mode" | "keyLimit" | "queueLimit" | "keepMs"
> {
  readonly type: string;
}

export type SubmitEntry = readonly [key: string, body: Body, id: string | undefined, headers: string | undefined];

export type SubmitGroup = readonly [terms: SubmitTerms, entries: readonly SubmitEntry[]];

/** A number: accepted under the id that goes with it, or under its own. */
export type SubmitAnswer = number | port.Accepted | RefusalTuple;

/** The lease that a renewal or settlement is about. */
export type LeaseTuple = readonly [keyId: number, fence: number];

export type RenewTuple = readonly [
  lease: LeaseTuple,
  leaseMs: number,
  progress: number | undefined,
  ended: readonly EndedEntry[] | undefined,
];

/** Nearly always everything is simply done: then two numbers say it. */
export type SettleTuple = readonly [...LeaseTuple, ending?: port.Ending | undefined, ended?: readonly EndedEntry[]];

/** The id of what is done without a result, or anything. */
export type EndedEntry = string | port.EndedItem;

export type RefusalTuple = readonly [code: RefusalCode, levels: readonly string[]];

/** Of those behind the first item of a run nothing else has to be said: they are of its key and level, and were never tried. */
export type GrantTuple = readonly [
  keyId: number,
  key: string,
  fence: number,
  level: number,
  attempt: number,
  losses: number,
  behind: readonly ItemTuple[] | undefined,
  ...first: ItemTuple,
];

export type ItemTuple = readonly [
  id: string,
  type: string,
  body: Body,
  headers: string | undefined,
  submittedAt: number,
];

/** `since` was read before anything was written. */
export interface Granted {
  readonly since: Instant;
  readonly levels: readonly string[];
  readonly grants: readonly GrantTuple[];
}

/** What can be asked of the store's thread, and what it answers. */
interface Calls {
  declare(request: { readonly queue: string; readonly levels: readonly string[] | undefined }): port.QueueDeclaration;
  submit(groups: readonly SubmitGroup[]): { readonly at: number; readonly answers: readonly SubmitAnswer[] };
  claim(request: Omit<port.ClaimRequest, "signal" | "lost">): Granted;
  hold(
    request: Pick<port.HoldRequest, "queue" | "key" | "worker" | "leaseMs"> & { readonly waits: boolean },
  ): { readonly since: Instant; readonly keyId: number; readonly fence: number } | undefined;
  renew(renewals: readonly RenewTuple[]): {
    readonly since: Instant;
    readonly results: readonly ("lost" | "renewed" | "cancel")[];
  };
  /** Returns the positions of those that were lost. */
  settle(settlements: readonly SettleTuple[]): readonly number[];
  find(request: port.ItemRequest): port.ItemReport | undefined;
  outcome(request: port.ItemRequest): port.Outcome | undefined;
  cancel(request: port.ItemRequest): port.CancelResult;
  pause(request: port.PauseRequest): undefined;
  /** Returns what is in it, if that is why it was not deleted. */
  deleteQueue(request: port.DeleteQueueRequest): "deleted" | "missing" | QueueContents;
  queues(request: { readonly queue: string | undefined }): readonly port.QueueReport[];
  keys(request: port.KeyPageRequest): readonly port.KeyReport[];
  dead(request: port.PageRequest): readonly port.DeadReport[];
  /** Without ids: a step of those up to the place that the first step names. */
  revive(request: port.ReviveRequest & { readonly upTo: number | undefined }): {
    readonly revived: number;
    readonly upTo: number;
    readonly more: boolean;
  };
  check(request: null): readonly port.Finding[];
  /** Returns the positions of those that are not current. */
  lapsed(leases: readonly LeaseTuple[]): readonly number[];
  /** How often this connection has looked for ready keys. */
  looks(request: null): number;
  readCell(request: { readonly name: string }): Cell | undefined;
  writeCell(request: {
    readonly name: string;
    readonly expected: number;
    readonly value: string | undefined;
    readonly ttlMs: number | undefined;
    readonly tell: readonly string[];
    readonly isQuiet: boolean;
  }): number | undefined;
  listCells(request: { readonly prefix: string }): readonly Cell[];
  /**
   * Waits until the cell is at another version than this; 0 stands for no cell. Undefined: than it is at now. Returns undefined when it was
   * given up.
   */
  watchCell(request: { readonly name: string; readonly version: number | undefined }): number | undefined;
  /** Ends a call that waits with what it has. */
  abandon(request: { readonly call: number }): undefined;
}

export type Kind = keyof Calls;
export type Requests = { readonly [K in Kind]: Parameters<Calls[K]>[0] };
export type Replies = { readonly [K in Kind]: ReturnType<Calls[K]> };

export type Call<K extends Kind = Kind> = {
  [P in K]: { readonly call: number; readonly kind: P; readonly request: Requests[P] };
}[K];

export interface PlainFailure {
  readonly code: ErrorCode;
  readonly message: string;
}

export type Reply =
  | { readonly call: number; readonly value: Replies[Kind] }
  | { readonly call: number; readonly failure: PlainFailure };

/** `look`: something may have changed. `hear losses`: of leases, from now on, where the store wakes by itself. */
export type ToThread = { readonly calls: readonly Call[] } | "look" | "hear losses" | "hears" | "deaf" | "close";

export type FromThread =
  | { readonly type: "open" }
  | { readonly type: "replies"; readonly replies: readonly Reply[] }
  | { readonly type: "news"; readonly news: News }
  /** Another process has found leases that ran out. */
  | { readonly type: "losses" }
  /** Does the application's event loop turn? Asked before work is taken for it. */
  | { readonly type: "alive?" }
  | { readonly type: "failed"; readonly failure: PlainFailure };
