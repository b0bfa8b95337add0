import type { Grant, Lease, Settlement, SettleResult } from "../../engine/port.ts";

/** An item of a key, and where the store has it. */
export interface Car {
  readonly grant: Grant;
  readonly ord: number;
  readonly spot: string;
}

/** A call that waits until all that it settles is certain. */
export interface Asked {
  answer(index: number, result: SettleResult): void;
  fail(error: unknown): void;
}

interface Question {
  readonly asked: Asked;
  readonly index: number;
}

/** What the store is told of a train in one step. */
export interface Report {
  readonly train: Train;
  readonly was: number;
  /** These are done, and the next one is what the store should know to run: none if it knows. */
  readonly done: readonly Car[];
  readonly at: Car;
  /** And that one has ended, too. */
  readonly last: Settlement | undefined;
}

/**
 * Items of one key that one lease covers, one after the other. The store says that the first of them runs; when it is done the next begins at
 * once, and the store hears later what is done by then and what runs (`Report`). Until it has, those items are not settled: if the process dies, they run
 * again, in their order. What was not begun needs no word at all: to the store it waits, as it did.
 *
 *   running ──done──▶ offered ──taken──▶ running ──last one done, or ended otherwise──▶ ended
 *                        └──nobody came, or its time is over──▶ ended
 */
export class Train {
  readonly key: number;
  readonly queue: string;
  readonly worker: string;
  readonly leaseMs: number;
  /** When none may begin any more, by the monotonic clock. */
  readonly #until: number;
  /** The first is what the store knows to run, or a report says so that is under way. */
  #cars: readonly Car[];
  #at = 0;
  #phase: "running" | "offered" | "ended" = "running";
  #last: Settlement | undefined;
  #isOver = false;
  readonly #questions = new Map<number, Question[]>();
  /** Asked by a call that failed, which comes again. */
  readonly #owed = new Set<number>();
  /** It was asked for a report. */
  isReporting = false;
  /** A report is under way: there is one at a time. */
  #isBeingTold = false;
  /** Of a report of which nobody knows whether it arrived: how many cars it was to leave behind. */
  #doubt: number | undefined;

  constructor(cars: readonly Car[], request: { readonly worker: string; readonly leaseMs: number }, until: number) {
    const { lease } = carAt(cars, 0).grant;
    this.key = Number(lease.handle);
    this.queue = lease.queue;
    this.worker = request.worker;
    this.leaseMs = request.leaseMs;
    this.#cars = cars;
    this.#until = until;
  }

  /** The fences by which the store may know the lease: two, after a report whose reply was lost. */
  get fences(): readonly number[] {
    const fence = fenceOf(this.#cars, 0);
    return this.#doubt === undefined || this.#doubt === 0 ? [fence] : [fence, fenceOf(this.#cars, this.#doubt)];
  }

  /** It is of an item that was begun. */
  has(fence: number): boolean {
    for (let index = this.#at; index >= 0; index -= 1) if (fenceOf(this.#cars, index) === fence) return true;
    return false;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get isBeingTold(): boolean {
    return this.#isBeingTold;
  }

  /** What could begin now. */
  offered(now: number): Grant | undefined {
    return this.#phase === "offered" && now < this.#until ? carAt(this.#cars, this.#at).grant : undefined;
  }

  take(): void {
    this.#phase = "running";
  }

  /** There is something to tell the store. */
  get hasNews(): boolean {
    return this.#at > 0 || this.#phase !== "running";
  }

  /** Whoever settles hears when it is certain. It may be asked again, after it failed. */
  end(settlement: Settlement, asked: Asked, index: number, now: number): void {
    const { lease, ending } = settlement;
    const questions = this.#questions.get(lease.fence);
    if (questions === undefined) this.#questions.set(lease.fence, [{ asked, index }]);
    else questions.push({ asked, index });
    this.#owed.delete(lease.fence);
    if (this.#phase !== "running" || fenceOf(this.#cars, this.#at) !== lease.fence) return;
    if (ending.type === "done" && this.#at + 1 < this.#cars.length && now < this.#until) {
      this.#at += 1;
      this.#phase = "offered";
    } else {
      this.#phase = "ended";
      this.#last = settlement;
    }
  }

  /** Nothing more of it begins. */
  stop(): void {
    if (this.#phase === "offered") {
      this.#at -= 1;
      this.#phase = "ended";
      this.#last = { lease: carAt(this.#cars, this.#at).grant.lease, ending: { type: "done" } };
    }
    this.#cars = this.#cars.slice(0, this.#at + 1);
  }

  /** What to tell the store now. What nobody came for has had its chance. */
  report(): Report {
    if (this.#phase === "offered") this.stop();
    const at = this.#doubt ?? this.#at;
    const last = at === this.#at ? this.#last : undefined;
    this.#doubt = at;
    this.#isBeingTold = true;
    return { train: this, was: fenceOf(this.#cars, 0), done: this.#cars.slice(0, at), at: carAt(this.#cars, at), last };
  }

  /** The store knows what it was told. Returns the fences of those of whom nobody hears it now. */
  reported({ done, last }: Report, result: SettleResult): readonly number[] {
    this.#doubt = undefined;
    this.#isBeingTold = false;
    for (const { grant } of done) this.#answer(grant.lease, "settled");
    this.#cars = this.#cars.slice(done.length);
    this.#at -= done.length;
    if (last !== undefined) {
      this.#answer(last.lease, result);
      this.#isOver = true;
    }
    return this.#owed.size === 0
      ? []
      : this.#unheardOf([...done.map(({ grant }) => grant.lease), ...(last === undefined ? [] : [last.lease])]);
  }

  #unheardOf(leases: readonly Lease[]): readonly number[] {
    return leases.map(({ fence }) => fence).filter((fence) => this.#owed.delete(fence));
  }

  /** The lease under which somebody works. */
  get running(): Lease | undefined {
    return this.#phase === "running" ? carAt(this.#cars, this.#at).grant.lease : undefined;
  }

  /** The key is somebody else's. Returns what should not run any more. */
  lost(): Lease | undefined {
    for (const { grant } of this.#cars) this.#answer(grant.lease, "lost");
    const lease = this.running;
    this.#phase = "ended";
    this.#isOver = true;
    return lease;
  }

  /** Whoever asked comes again. */
  failed(error: unknown): void {
    this.#isBeingTold = false;
    for (const [fence, questions] of this.#questions) {
      this.#owed.add(fence);
      for (const { asked } of questions) asked.fail(error);
    }
    this.#questions.clear();
  }

  #answer({ fence }: Lease, result: SettleResult): void {
    for (const { asked, index } of this.#questions.get(fence) ?? []) asked.answer(index, result);
    this.#questions.delete(fence);
  }
}

function carAt(cars: readonly Car[], index: number): Car {
  const car = cars[index];
  if (car === undefined) throw new RangeError("A train has lost its cars.");
  return car;
}

function fenceOf(cars: readonly Car[], index: number): number {
  return carAt(cars, index).grant.lease.fence;
}
