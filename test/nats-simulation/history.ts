import type { CancelResult, Ending } from "../../src/engine/port.ts";
import type { Mode } from "../../src/domain/settings.ts";

/**
 * What happened in a run, in order, each entry with its true time. The checker sees this and nothing else: what the
 * processes called and were answered, when a write with some sequence reached the store, and the faults.
 */
export type Happening = { readonly at: number } & What;

export type What =
  | {
      readonly type: "submit";
      readonly process: string;
      readonly call: number;
      readonly token: number;
      readonly key: string;
      readonly level: number;
      readonly id: string | undefined;
      readonly mode: Mode;
      readonly delayMs: number;
      readonly keeps: boolean;
    }
  | {
      readonly type: "submitted";
      readonly call: number;
      readonly key: string;
      readonly result: "accepted" | "duplicate" | "refused" | "unknown";
      readonly id?: string;
      readonly replaced?: readonly string[];
      readonly why?: string;
    }
  | {
      readonly type: "grant";
      readonly process: string;
      readonly lease: number;
      readonly key: string;
      readonly fence: number;
      /** True time of the reading that the deadline counts from. */
      readonly since: number;
      readonly leaseMs: number;
      /** Undefined for a hold. */
      readonly token?: number;
      readonly id?: string;
      readonly attempt?: number;
    }
  /** Its holder goes on to the next item of the run, after this one. */
  | {
      readonly type: "begin";
      readonly lease: number;
      readonly key: string;
      readonly before: number;
      readonly token: number;
      readonly id: string;
      readonly attempt: number;
    }
  | {
      readonly type: "renew";
      readonly call: number;
      readonly lease: number;
      readonly key: string;
      readonly ended: readonly RunEnding[];
    }
  | {
      readonly type: "renewed";
      readonly call: number;
      readonly lease: number;
      readonly key: string;
      readonly result: "ok" | "lost" | "unknown";
      readonly since?: number;
      readonly cancelRequested?: boolean;
    }
  | {
      readonly type: "settle";
      readonly call: number;
      readonly lease: number;
      readonly key: string;
      /** Undefined for a hold. */
      readonly token: number | undefined;
      readonly ended: readonly RunEnding[];
      readonly ending: Ending["type"];
      readonly yields: boolean;
    }
  | {
      readonly type: "settled";
      readonly call: number;
      readonly lease: number;
      readonly key: string;
      readonly result: "settled" | "lost" | "unknown";
    }
  | {
      readonly type: "cancel";
      readonly call: number;
      readonly process: string;
      readonly key: string;
      readonly id: string;
    }
  | {
      readonly type: "cancelled";
      readonly call: number;
      readonly key: string;
      readonly id: string;
      readonly result: CancelResult | "unknown";
    }
  /** Key undefined: the whole queue. */
  | { readonly type: "pause"; readonly process: string; readonly key: string | undefined; readonly paused: boolean }
  | {
      readonly type: "paused";
      readonly key: string | undefined;
      readonly paused: boolean;
      readonly result: "done" | "unknown";
    }
  /** A message reached the queue's stream. `says` is for people. */
  | {
      readonly type: "write";
      readonly key: string;
      readonly sequence: number;
      readonly subject: string;
      readonly says: () => string;
    }
  | { readonly type: "gone"; readonly key: string; readonly sequence: number; readonly subject: string }
  /** A sign of life, or its end. */
  | { readonly type: "session"; readonly subject: string; readonly says: () => string }
  | {
      readonly type: "fault";
      readonly kind: FaultKind;
      readonly process?: string;
      readonly says: string;
      readonly ms?: number;
    }
  | { readonly type: "calm" };

/** An item of a run that ended before the one that a report is about. */
export interface RunEnding {
  readonly token: number;
  readonly how: Ending["type"];
}

export type FaultKind =
  | "crash"
  | "stop"
  | "go on"
  | "cut"
  | "restore"
  | "request lost"
  | "reply lost"
  | "server restart"
  | "acks forgotten"
  | "slow"
  | "clock step"
  | "consumer deleted";

/** What is left when nothing more is expected. */
export interface LastWords {
  /** Everything was done within its time. */
  readonly drained: boolean;
  /** What was left in the stream, or of delays and back-offs, when time was up. */
  readonly left: readonly string[];
  /** How long after the last fault everything was done, and after that until nothing was left. */
  readonly drainMs: number;
  /** Items that are remembered, by id: how they ended. */
  readonly outcomes: ReadonlyMap<string, string>;
  readonly surprises: readonly string[];
}

export class History {
  readonly happenings: Happening[] = [];

  add(at: number, what: What): void {
    this.happenings.push({ at, ...what });
  }
}

export function traceLine({ at, type, ...rest }: Happening): string {
  const particulars = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${textOf(value)}`);
  return `${at.toFixed(2).padStart(10)}  ${type.padEnd(10)} ${particulars.join(" ")}`;
}

function textOf(value: unknown): string {
  if (typeof value === "function") return textOf((value as () => string)());
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What concerns one key; faults concern all. */
export function traceOfKey(happenings: readonly Happening[], key: string | undefined): string[] {
  return happenings
    .filter((one) => key === undefined || !("key" in one) || one.key === undefined || one.key === key)
    .map(traceLine);
}
