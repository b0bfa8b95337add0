import type { Instant } from "../../domain/clock.ts";
import type { Body } from "../../domain/payload.ts";
import type * as port from "../../engine/port.ts";
import type { ErrorCode, QueueContents } from "../../domain/errors.ts";
import type { Cell } from "../../locks/register.ts";
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
  readonly lost: readonly { readonly queue: string; readonly key: string; readonly fence: number }[];
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

/** Nearly always everything is simply done: then two numbers say it. */
export type SettleTuple = readonly [...LeaseTuple, ending?: port.Ending | undefined, ended?: readonly EndedEntry[]];

/** The id of what is done without a result, or anything. */
export type EndedEntry = string | port.EndedItem;

export interface Requests {
  declare: { readonly queue: string; readonly levels: readonly string[] | undefined };
  submit: readonly SubmitGroup[];
  claim: Pick<port.ClaimRequest, "queue" | "worker" | "max" | "leaseMs" | "patienceMs"> & { readonly items: number };
  hold: Pick<port.HoldRequest, "queue" | "key" | "worker" | "leaseMs"> & { readonly waits: boolean };
  renew: readonly (readonly [
    lease: LeaseTuple,
    leaseMs: number,
    progress: number | undefined,
    ended: readonly EndedEntry[] | undefined,
  ])[];
  /** Without an ending: done without a result. */
  settle: readonly SettleTuple[];
  find: port.ItemRequest;
  outcome: port.ItemRequest;
  cancel: port.ItemRequest;
  pause: port.PauseRequest;
  deleteQueue: port.DeleteQueueRequest;
  queues: { readonly queue: string | undefined };
  keys: port.KeyPageRequest;
  dead: port.PageRequest;
  /** Without ids: a step of those up to the place that the first step names. */
  revive: port.ReviveRequest & { readonly upTo: number | undefined };
  check: null;
  /** Which of these leases are not current. */
  lapsed: readonly LeaseTuple[];
  /** How often this connection has looked for ready keys. */
  looks: null;
  readCell: { readonly name: string };
  writeCell: {
    readonly name: string;
    readonly expected: number;
    readonly value: string | undefined;
    readonly ttlMs: number | undefined;
    readonly tell: readonly string[];
    readonly isQuiet: boolean;
  };
  listCells: { readonly prefix: string };
  /** Waits until the cell is at another version than this; 0 stands for no cell. Undefined: than it is at now. */
  watchCell: { readonly name: string; readonly version: number | undefined };
  /** Ends a call that waits with what it has. */
  abandon: { readonly call: number };
}

export type RefusalTuple = readonly [code: "KEY_BUSY" | "KEY_FULL" | "QUEUE_FULL" | "LEVEL" | "QUEUE", detail: string];

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

export interface Replies {
  declare: port.QueueDeclaration;
  submit: { readonly at: number; readonly answers: readonly SubmitAnswer[] };
  claim: Granted;
  hold: { readonly since: Instant; readonly keyId: number; readonly fence: number } | undefined;
  renew: { readonly since: Instant; readonly results: readonly ("lost" | "renewed" | "cancel")[] };
  /** The positions of those that were lost. */
  settle: readonly number[];
  find: port.ItemReport | undefined;
  outcome: port.Outcome | undefined;
  cancel: port.CancelResult;
  pause: undefined;
  /** What is in it, if that is why it was not deleted. */
  deleteQueue: "deleted" | "missing" | QueueContents;
  queues: readonly port.QueueReport[];
  keys: readonly port.KeyReport[];
  dead: readonly port.DeadReport[];
  revive: { readonly revived: number; readonly upTo: number; readonly more: boolean };
  check: readonly port.Finding[];
  lapsed: readonly number[];
  looks: number;
  readCell: Cell | undefined;
  writeCell: number | undefined;
  listCells: readonly Cell[];
  /** Undefined: it was given up. */
  watchCell: number | undefined;
  abandon: undefined;
}

export type Kind = keyof Requests;

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
