/**
 * A script is data: what is asked of an engine, step by step. It names queues, keys and handles by number, items and
 * leases by how long ago they came, and times by units, so that any part of it can be left out and the rest still means something.
 */
export interface Script {
  /** Most urgent first. */
  readonly levels: readonly string[];
  /** So many handles of the store are open. */
  readonly handles: number;
  /** They are of this script alone, which may therefore close them. */
  readonly ownHandles: boolean;
  readonly bursts: readonly Burst[];
}

/** Steps that are asked for at once, without waiting for answers in between. */
export type Burst = readonly Step[];

/** `by`: the handle that is asked. */
export type Step = { readonly by: number } & Asked;

type Asked =
  | { readonly do: "submit"; readonly entries: readonly Entry[] }
  | {
      readonly do: "claim";
      readonly queue: number;
      readonly max: number;
      readonly lease: Time;
      /** The most items of a run, where there are runs. */
      readonly items?: number;
      /** It waits a while also for nothing: what has come due may have to be fetched first. */
      readonly stirs?: boolean;
    }
  | {
      readonly do: "settle";
      /** The reply is taken for lost: the call is made once more. */
      readonly twice: boolean;
      readonly entries: readonly SettlementWish[];
    }
  | { readonly do: "renew"; readonly twice?: boolean; readonly entries: readonly RenewalWish[] }
  | { readonly do: "hold"; readonly queue: number; readonly key: number; readonly lease: Time }
  | { readonly do: "cancel" | "find" | "outcome"; readonly queue: number; readonly item: number }
  | { readonly do: "pause"; readonly queue: number; readonly key?: number; readonly paused: boolean }
  | {
      readonly do: "revive";
      readonly queue: number;
      readonly items?: readonly number[];
      readonly action: "retry" | "drop";
    }
  | {
      readonly do: "keys";
      readonly queue: number;
      readonly after?: number;
      readonly limit: number;
      readonly leased: boolean;
    }
  | { readonly do: "dead"; readonly queue: number; readonly after?: number; readonly limit: number }
  | { readonly do: "queues" }
  | { readonly do: "reopen" }
  /** All handles are closed before the first is opened again. */
  | { readonly do: "restart" }
  | { readonly do: "wait"; readonly units: number };

/**
 * In units of the store's time. What comes due does so in the middle between two moments at which something is asked.
 * `far`: not while a script is played.
 */
export type Time = "none" | "soon" | "later" | "far";

export interface Entry {
  readonly queue: number;
  readonly key: number;
  /** A number of the script's own choice; undefined: the engine gives one. */
  readonly id?: number;
  /** The number of the level; there may be none. */
  readonly level: number;
  readonly mode: "fifo" | "latest" | "strict";
  readonly delay: Time;
  readonly keep: Time;
  readonly keyLimit: number;
  readonly queueLimit: number;
  readonly bytes: boolean;
  readonly headers: boolean;
}

export interface RenewalWish {
  readonly lease: number;
  readonly time: Time;
  readonly progress?: number;
  readonly ended?: readonly EndedWish[];
}

export interface SettlementWish {
  readonly lease: number;
  readonly ended?: readonly EndedWish[];
  readonly ending: EndingWish;
}

/** How items of a run ended, from its first on, as the run was when it was granted; never its last, however many there are. */
export type EndedWish = Extract<EndingWish, { readonly type: "done" }> | { readonly type: "cancelled" };

export type EndingWish =
  | { readonly type: "done"; readonly result?: string; readonly resultMissing?: string }
  | { readonly type: "retry"; readonly delay: Time; readonly place: "keep" | "yield" }
  | { readonly type: "cancelled" }
  | { readonly type: "dead" | "release" };

export const QUEUES = 2;
/** Not in the order of their numbers, and not all of one byte per character: pages go by the bytes of the names. */
export const KEYS = ["car", "auto", "Žuk", "z", "🚗"] as const;
