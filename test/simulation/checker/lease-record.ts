import type { Ending } from "../../../src/engine/port.ts";
import type { Ended, Guard, GrantedItem, Happening, HandlerEnd } from "../history.ts";

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

/** One item under one lease. */
export interface ItemRecord extends GrantedItem {
  /** Its place in the run. */
  readonly place: number;
  toldCancel: boolean;
  started: { readonly at: number; readonly guard: Guard } | undefined;
  /** Its handler was begun under the same lease once more. */
  startedAgainAt: number | undefined;
  finished: { readonly at: number; readonly how: HandlerEnd } | undefined;
  /** What the store made of it: it counts the attempt of the first from the grant on, and of the others when a report says so. */
  isCounted: boolean;
  ended: Ending["type"] | undefined;
  /** Attempts that count in the store, and of which its process knows that it began none of them: they are not held against the item there. */
  unbegunBefore: number;
}

/** A report of a run, as its process sends it. */
export interface SettlingRecord {
  readonly at: number;
  readonly ending: Ending["type"];
  /** Ids of the items that it says, or that the store was told of before, to have ended. */
  readonly named: readonly string[];
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
  /** The run, in order. None for a hold. */
  readonly items: readonly ItemRecord[];
  readonly told: Told[];
  readonly effects: EffectRecord[];
  readonly settlings: SettlingRecord[];
  /** When its process first asked for a renewal that lets nothing more begin. */
  closedAt: number | undefined;
  /** When it asked for a renewal that says nothing of the run, although the store takes the lease for one that covers more than what runs. */
  silentAt: number | undefined;
  /** The store has answered that nothing more begins. */
  isClosed: boolean;
  /** Ids of items of which its process knows that the store has heard how they ended. */
  readonly reported: Set<string>;
  /** When its process heard what the store made of a settlement, or that the lease is lost. */
  answeredAt: number | undefined;
  /** When its process learnt that a settlement got no answer. */
  readonly unanswered: number[];
  toldLost: boolean;
  settled: { readonly at: number; readonly ending: Ending["type"] } | undefined;
}

export class LeaseRecords {
  readonly all: Map<number, LeaseRecord> = new Map();
  /** Renewals that said what has ended, while a run went on. */
  reports = 0;

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
      case "renewing": {
        const record = this.#get(happening);
        if (happening.ended === undefined) {
          if (record.items.length > 1 && !record.isClosed) record.silentAt ??= happening.at;
          break;
        }
        record.closedAt ??= happening.at;
        if (happening.ended.length > 0) this.reports += 1;
        break;
      }
      case "renewed": {
        const record = this.#get(happening);
        if (happening.ok && happening.ended !== undefined) {
          record.isClosed = true;
          for (const { id } of happening.ended) record.reported.add(id);
        }
        if (happening.ok) record.told.push(happening);
        else {
          record.toldLost = true;
          record.answeredAt ??= happening.at;
        }
        // What it hears after its handler has ended comes too late to matter.
        const running = record.items.findLast(({ started }) => started !== undefined) ?? record.items[0];
        if (running?.finished === undefined && running !== undefined) running.toldCancel ||= happening.cancelRequested;
        break;
      }
      case "started": {
        const item = itemOf(this.#get(happening), happening.token);
        if (item.started === undefined) item.started = happening;
        else item.startedAgainAt ??= happening.at;
        break;
      }
      case "effect": {
        const { at, wall, guard } = happening;
        const record = this.#get(happening);
        record.effects.push({ at, wall, guard, told: record.told.length, knewLoss: record.toldLost });
        break;
      }
      case "finished":
        itemOf(this.#get(happening), happening.token).finished = happening;
        break;
      case "settle-answered":
        this.#get(happening).answeredAt ??= happening.at;
        break;
      case "settle-unknown":
        this.#get(happening).unanswered.push(happening.at);
        break;
      case "settling": {
        const record = this.#get(happening);
        const { at, ended, ending } = happening;
        record.settlings.push({ at, ending, named: [...record.reported, ...ended.map(({ id }) => id)] });
        break;
      }
      case "store-renew":
        if (happening.ok === true && happening.ended !== undefined) endBefore(this.#get(happening), happening.ended);
        break;
      case "store-settle": {
        const record = this.#get(happening);
        if (happening.result !== "settled" || record.settled !== undefined) break;
        record.settled = happening;
        endBefore(record, happening.ended);
        const last = runningOf(record);
        if (last !== undefined) last.ended = happening.ending;
        break;
      }
      default:
        break;
    }
  }

  #add(made: Extract<Happening, { type: "store-grant" | "store-hold" }>, number: number): void {
    const grant = made.type === "store-grant" ? made : undefined;
    const items = grant === undefined ? [] : [grant, ...grant.behind];
    this.all.set(number, {
      number,
      process: made.process,
      key: made.key,
      leaseMs: made.leaseMs,
      madeAt: made.at,
      worker: grant?.worker,
      items: items.map(itemRecord),
      told: [],
      effects: [],
      settlings: [],
      closedAt: undefined,
      silentAt: undefined,
      isClosed: false,
      reported: new Set(),
      answeredAt: undefined,
      unanswered: [],
      toldLost: false,
      settled: undefined,
    });
  }

  #get({ lease }: { readonly lease: number }): LeaseRecord {
    const record = this.all.get(lease);
    if (record === undefined) throw new Error(`The history speaks of lease #${lease} before it was made.`);
    return record;
  }
}

function itemRecord({ token, id, level, attempt, losses }: GrantedItem, place: number): ItemRecord {
  return {
    token,
    id,
    level,
    attempt,
    losses,
    place,
    toldCancel: false,
    started: undefined,
    startedAgainAt: undefined,
    finished: undefined,
    isCounted: place === 0,
    ended: undefined,
    unbegunBefore: 0,
  };
}

/** One that is not the next to end was reported before; and the last of a run ends with its lease only. */
function endBefore(record: LeaseRecord, ended: readonly Ended[]): void {
  for (const { id, ending } of ended) {
    const running = runningOf(record);
    const next = running === undefined ? undefined : record.items[running.place + 1];
    if (running?.id !== id || next === undefined) continue;
    running.ended = ending;
    next.isCounted = true;
  }
}

function runningOf({ items }: LeaseRecord): ItemRecord | undefined {
  return items.findLast(({ isCounted }) => isCounted);
}

/** A worker that is given one item and works on another is beyond what is to be found here. */
function itemOf(record: LeaseRecord, token: number): ItemRecord {
  const item = record.items.find((one) => one.token === token);
  if (item === undefined) throw new Error(`Lease #${record.number} does not cover item ${token}, which ran under it.`);
  return item;
}

/** The share of a lease that its margin never exceeds. */
export const LARGEST_MARGIN: number = 1 / 4;

/** As DESIGN and RELIABILITY have it: the larger of a tenth and half a second, and a quarter at most. */
export function marginMs(leaseMs: number): number {
  return Math.min(Math.max(leaseMs / 10, 500), leaseMs * LARGEST_MARGIN);
}
