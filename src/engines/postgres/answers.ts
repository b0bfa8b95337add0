import type { SettleResult } from "../../engine/port.ts";
import type { Asked } from "./train.ts";

/** The results of one call, which come one by one. */
export class Answers implements Asked {
  readonly all: Promise<readonly SettleResult[]>;
  readonly #results: SettleResult[];
  #missing: number;
  #resolve: (results: readonly SettleResult[]) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;

  constructor(count: number) {
    this.#missing = count;
    this.#results = Array.from({ length: count }, () => "lost");
    this.all = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  answer(index: number, result: SettleResult): void {
    this.#results[index] = result;
    this.#missing -= 1;
    if (this.#missing === 0) this.#resolve(this.#results);
  }

  /** Some of them may be settled all the same; whoever asked comes again. */
  fail(error: unknown): void {
    this.#reject(error);
  }
}
