import type { Ending } from "../../../src/engine/port.ts";
import type { Guard, Happening, HandlerEnd } from "../history.ts";

/** What its process was told about a lease: until when it may trust it. */
export interface Told {
  readonly at: number;
  readonly since: number;
  readonly sinceWall: number;
}

export interface EffectRecord {
  readonly at: number;
  readonly wall: number;
  readonly guard: Guard;
  /** How much had been told when it happened. */
  readonly told: number;
  readonly knewLoss: boolean;
}

/** The life of one lease, from the store and from its process. */
export interface LeaseRecord {
  readonly number: number;
  readonly process: string;
  readonly key: string;
  readonly leaseMs: number;
  readonly madeAt: number;
  /** Undefined for a hold. */
  readonly worker: string | undefined;
  readonly token: number | undefined;
  readonly attempt: number;
  readonly told: Told[];
  readonly effects: EffectRecord[];
  readonly settlings: { readonly at: number; readonly ending: Ending["type"] }[];
  /** When its process learnt that a settlement got no answer. */
  readonly unanswered: number[];
  toldLost: boolean;
  toldCancel: boolean;
  started: { readonly at: number; readonly guard: Guard } | undefined;
  finished: { readonly at: number; readonly how: HandlerEnd } | undefined;
  settled: { readonly at: number; readonly ending: Ending["type"] } | undefined;
}

export class LeaseRecords {
  readonly all: Map<number, LeaseRecord> = new Map();

  follow(happening: Happening): void {
    switch (happening.type) {
      case "store-grant":
        this.#add(happening, happening.lease);
        break;
      case "store-hold":
        if (happening.lease !== undefined) this.#add(happening, happening.lease);
        break;
      case "granted":
        this.#get(happening).told.push(happening);
        break;
      case "renewed": {
        const record = this.#get(happening);
        if (happening.ok) record.told.push(happening);
        else record.toldLost = true;
        // What it hears after its handler has ended comes too late to matter.
        record.toldCancel ||= happening.cancelRequested && record.finished === undefined;
        break;
      }
      case "started":
        this.#get(happening).started = happening;
        break;
      case "effect": {
        const { at, wall, guard } = happening;
        const record = this.#get(happening);
        record.effects.push({ at, wall, guard, told: record.told.length, knewLoss: record.toldLost });
        break;
      }
      case "finished":
        this.#get(happening).finished = happening;
        break;
      case "settle-unknown":
        this.#get(happening).unanswered.push(happening.at);
        break;
      case "settling":
        this.#get(happening).settlings.push(happening);
        break;
      case "store-settle":
        if (happening.result === "settled") this.#get(happening).settled ??= happening;
        break;
      default:
        break;
    }
  }

  #add(made: Extract<Happening, { type: "store-grant" | "store-hold" }>, number: number): void {
    const grant = made.type === "store-grant" ? made : undefined;
    this.all.set(number, {
      number,
      process: made.process,
      key: made.key,
      leaseMs: made.leaseMs,
      madeAt: made.at,
      worker: grant?.worker,
      token: grant?.token,
      attempt: grant?.attempt ?? 0,
      told: [],
      effects: [],
      settlings: [],
      unanswered: [],
      toldLost: false,
      toldCancel: false,
      started: undefined,
      finished: undefined,
      settled: undefined,
    });
  }

  #get({ lease }: { readonly lease: number }): LeaseRecord {
    const record = this.all.get(lease);
    if (record === undefined) throw new Error(`The history speaks of lease #${lease} before it was made.`);
    return record;
  }
}

/** The share of a lease that its margin never exceeds. */
export const LARGEST_MARGIN: number = 1 / 4;

/** As DESIGN and RELIABILITY have it: the larger of a tenth and half a second, and a quarter at most. */
export function marginMs(leaseMs: number): number {
  return Math.min(Math.max(leaseMs / 10, 500), leaseMs * LARGEST_MARGIN);
}
