import type * as port from "../../../../src/engine/port.ts";

/** When a call was made and when it was answered, by one clock. Whatever it did happened in between. */
export interface Span {
  readonly begun: number;
  readonly ended: number;
}

/** One submission. Its payload says which, so that it is known again whatever id it got. */
export interface Submitted extends Span {
  readonly tag: string;
  readonly submission: port.Submission;
  /** Undefined: the reply was lost. */
  readonly result: port.SubmitResult | undefined;
}

/** Of a run of items, or of a hold. */
export interface Leased extends Span {
  readonly lease: port.Lease;
  /** The first of the run. */
  readonly item: port.Item | undefined;
  /** The others of it, in order. */
  readonly behind: readonly port.Item[];
  readonly leaseMs: number;
}

/** Something that a holder said about its lease. */
interface Report extends Span {
  readonly leased: Leased;
  /** What one handle asks takes effect in this order. */
  readonly order: number;
  /** The items that ended before the last. Undefined in a renewal: the run goes on as it was. */
  readonly before: readonly port.EndedItem[] | undefined;
}

export interface Settled extends Report {
  readonly ending: port.Ending;
  readonly result: port.SettleResult | undefined;
}

export interface Renewed extends Report {
  readonly leaseMs: number;
  readonly result: port.RenewResult | undefined;
}

export interface Cancelled extends Span {
  readonly id: string;
  readonly result: port.CancelResult | undefined;
}

export interface Revived extends Span {
  readonly action: "retry" | "drop";
  readonly count: number | undefined;
}

/** Everything that was asked of a queue, in the order in which it was asked. */
export class History {
  readonly submitted: Submitted[] = [];
  readonly leased: Leased[] = [];
  readonly settled: Settled[] = [];
  readonly renewed: Renewed[] = [];
  readonly cancelled: Cancelled[] = [];
  readonly revived: Revived[] = [];
  #reports = 0;

  /** The place of a report among all. */
  nextOrder(): number {
    return (this.#reports += 1);
  }
}

/** All items that a lease covered when it was made. */
export function runOf({ item, behind }: Leased): readonly port.Item[] {
  return item === undefined ? [] : [item, ...behind];
}

export function tagOf({ payload }: Pick<port.Item, "payload">): string {
  return typeof payload.body === "string" ? payload.body : Buffer.from(payload.body).toString();
}
