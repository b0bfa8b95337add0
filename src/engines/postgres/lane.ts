import type { Payload } from "../../domain/payload.ts";
import type { Settlement, SettleResult, Submission, SubmitResult } from "../../engine/port.ts";

/** A call that waits for its answer. */
interface Call<I, O> {
  readonly kind: string;
  readonly input: I;
  readonly resolve: (output: O) => void;
  readonly reject: (error: unknown) => void;
}

export interface SubmitCall extends Call<readonly Submission[], readonly SubmitResult[]> {
  readonly kind: "submit";
}

export interface SettleCall extends Call<readonly Settlement[], readonly SettleResult[]> {
  readonly kind: "settle";
}

interface PlainCall {
  readonly kind: "plain";
  readonly run: () => Promise<void>;
}

type Task = SubmitCall | SettleCall | PlainCall;

/** What a lane does with what it gathered. None of these throws: failures go to the calls they concern. */
export interface LaneWork {
  submit(calls: readonly SubmitCall[]): Promise<void>;
  /** Ends leases, if any, and serves whoever waits for work, if anybody does. */
  step(calls: readonly SettleCall[]): Promise<void>;
  /** Somebody waits who should be served now. */
  readonly hasWaiting: boolean;
  /** Ends leases while a step is under way, on a connection of its own, if it is worth it. Undefined: it is not. */
  stepBeside(leases: number, take: () => readonly SettleCall[]): Promise<void> | undefined;
  /** Nothing is left to do for the moment. */
  rest(): Promise<void>;
}

/** So many items in a transaction: more would keep others waiting for longer than they gain. */
const MOST_TOGETHER = 1_000;
/** And so much of what they carry: each byte is several times in memory until it is sent, and everybody waits for all of it. */
const MOST_CHARACTERS = 4 * 1024 * 1024;

/**
 * Calls of one handle, which take effect in the order in which they were made. Those of one turn of the event loop, and those that come
 * while a transaction is under way, share the next one: group commit.
 * Leases end independently of one another, so when many end while a step is under way, another may begin beside it; everything else has the
 * lane to itself.
 */
export class Lane {
  readonly #work: LaneWork;
  readonly #tasks: Task[] = [];
  readonly #quiet: (() => void)[] = [];
  #isAwake = false;
  #isPlanned = false;
  #isBusy = false;
  #isStepping = false;
  #beside: Promise<void> | undefined;
  /** Those who wait for work are served before what comes next. */
  #servesFirst = false;

  constructor(work: LaneWork) {
    this.#work = work;
  }

  submit(input: readonly Submission[]): Promise<readonly SubmitResult[]> {
    return new Promise((resolve, reject) => this.#add({ kind: "submit", input, resolve, reject }));
  }

  settle(input: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return new Promise((resolve, reject) => this.#add({ kind: "settle", input, resolve, reject }));
  }

  /** A call that is a transaction of its own. */
  call<T>(run: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => this.#add({ kind: "plain", run: () => run().then(resolve, reject) }));
  }

  /** Somebody waits to be served. */
  nudge(): void {
    this.#isAwake = true;
    if (this.#isPlanned || (this.#isBusy && !this.#isStepping)) return;
    this.#isPlanned = true;
    // At the end of the turn: whatever else is asked for in it goes along.
    setImmediate(() => {
      this.#isPlanned = false;
      if (this.#isBusy) this.#stepBeside();
      else void this.#go();
    });
  }

  /** Resolves when everything that was asked for is answered. */
  quiet(): Promise<void> {
    if (!this.#isAwake) return Promise.resolve();
    return new Promise((resolve) => this.#quiet.push(resolve));
  }

  #add(task: Task): void {
    this.#tasks.push(task);
    this.nudge();
  }

  /** Does what is asked for until nothing is left. */
  async #go(): Promise<void> {
    this.#isBusy = true;
    while (this.#isAwake) {
      const kind = this.#tasks[0]?.kind;
      const { hasWaiting } = this.#work;
      if (kind === "settle" || (hasWaiting && (kind === undefined || this.#servesFirst))) {
        this.#servesFirst = false;
        // Those who wait for work are served along with what frees keys, or else by themselves.
        this.#isStepping = true;
        await this.#work.step(this.#take("settle"));
        this.#isStepping = false;
      } else if (this.#beside !== undefined) await this.#beside;
      else if (kind === undefined) await this.#rest();
      else await this.#next(kind);
    }
    this.#isBusy = false;
  }

  /** One at a time, and only what could be done now. */
  #stepBeside(): void {
    if (!this.#isStepping || this.#beside !== undefined) return;
    let leases = 0;
    for (const task of this.#tasks) {
      if (task.kind !== "settle") break;
      leases += task.input.length;
    }
    this.#beside = this.#work
      .stepBeside(leases, () => this.#take("settle"))
      ?.finally(() => {
        this.#beside = undefined;
        this.#stepBeside();
      });
  }

  async #next(kind: "submit" | "plain"): Promise<void> {
    this.#servesFirst = true;
    if (kind === "submit") {
      await this.#work.submit(this.#take("submit"));
      return;
    }
    const task = this.#tasks.shift();
    if (task?.kind === "plain") await task.run();
  }

  async #rest(): Promise<void> {
    await this.#work.rest();
    if (this.#tasks.length > 0 || this.#work.hasWaiting) return;
    this.#isAwake = false;
    for (const quiet of this.#quiet.splice(0)) quiet();
  }

  /** The first in line, as long as they are of one kind, and not too many or too large. One call is never divided: it has one answer. */
  #take(kind: "submit"): SubmitCall[];
  #take(kind: "settle"): SettleCall[];
  #take(kind: "submit" | "settle"): (SubmitCall | SettleCall)[] {
    const taken: (SubmitCall | SettleCall)[] = [];
    let size = 0;
    let weight = 0;
    for (let task = this.#tasks[0]; task?.kind === kind && size < MOST_TOGETHER; task = this.#tasks[0]) {
      weight += weightOf(task);
      if (weight > MOST_CHARACTERS && size > 0) break;
      size += task.kind === "submit" ? task.input.length : itemsOf(task);
      taken.push(task);
      this.#tasks.shift();
    }
    return taken;
  }
}

/** Of payloads and results, in characters or bytes, whichever is at hand: counting the bytes of texts would cost more than it tells. */
function weightOf(call: SubmitCall | SettleCall): number {
  let weight = 0;
  if (call.kind === "submit") for (const { payload } of call.input) weight += payload.body.length;
  else
    for (const { ended = [], ending } of call.input)
      for (const one of [...ended, { ending }]) weight += resultOf(one)?.body.length ?? 0;
  return weight;
}

function itemsOf({ input }: SettleCall): number {
  return input.reduce((sum, { ended = [] }) => sum + 1 + ended.length, 0);
}

function resultOf({ ending }: Pick<Settlement, "ending">): Payload | undefined {
  return ending.type === "done" ? ending.result : undefined;
}
