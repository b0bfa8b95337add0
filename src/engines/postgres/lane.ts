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
  /** Nothing is left to do for the moment. */
  rest(): Promise<void>;
}

/** So many items in a transaction: more would keep others waiting for longer than they gain. */
const MOST_TOGETHER = 1_000;

/**
 * Calls of one handle, which take effect in the order in which they were made. Those of one turn of the event loop, and those that come
 * while a transaction is under way, share the next one: group commit. One connection is enough for that, and keeps the order.
 */
export class Lane {
  readonly #work: LaneWork;
  readonly #tasks: Task[] = [];
  #begun = false;
  readonly #ended: (() => void)[] = [];

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
    if (this.#begun) return;
    this.#begun = true;
    // At the end of the turn: whatever else is asked for in it goes along.
    setImmediate(() => {
      void this.#drain();
    });
  }

  /** Resolves when everything that was asked for is answered. */
  quiet(): Promise<void> {
    if (!this.#begun) return Promise.resolve();
    return new Promise((resolve) => this.#ended.push(resolve));
  }

  #add(task: Task): void {
    this.#tasks.push(task);
    this.nudge();
  }

  async #drain(): Promise<void> {
    for (;;) {
      const kind = this.#tasks[0]?.kind;
      if (kind === undefined && !this.#work.hasWaiting) {
        await this.#work.rest();
        if (this.#tasks.length > 0 || this.#work.hasWaiting) continue;
        break;
      }
      if (kind === "submit") await this.#work.submit(this.#take("submit"));
      else if (kind === "plain") await this.#plain();
      // Those who wait for work are served along with what frees keys, or else by themselves.
      if (kind === "settle" || (this.#work.hasWaiting && this.#nextKind() !== "settle")) {
        await this.#work.step(this.#take("settle"));
      }
    }
    this.#begun = false;
    for (const ended of this.#ended.splice(0)) ended();
  }

  #nextKind(): Task["kind"] | undefined {
    return this.#tasks[0]?.kind;
  }

  async #plain(): Promise<void> {
    const task = this.#tasks.shift();
    if (task?.kind === "plain") await task.run();
  }

  /** The first in line, as long as they are of one kind. */
  #take(kind: "submit"): SubmitCall[];
  #take(kind: "settle"): SettleCall[];
  #take(kind: "submit" | "settle"): (SubmitCall | SettleCall)[] {
    const taken: (SubmitCall | SettleCall)[] = [];
    let size = 0;
    for (let task = this.#tasks[0]; task?.kind === kind && size < MOST_TOGETHER; task = this.#tasks[0]) {
      size += task.input.length;
      taken.push(task);
      this.#tasks.shift();
    }
    return taken;
  }
}
