import type { Clock } from "../domain/clock.ts";
import type { HintResult, HintStore } from "./port.ts";
import { within } from "./within.ts";

/** A budget that is not answered for so long holds up the wake that asks for it; it is better to wake one too many. */
const ANSWER_MS = 1_000;
/** After that, the budgets are left alone for so long. */
const REST_MS = 5_000;

/** The budgets, with everything that can go wrong with them made harmless: whoever cannot be told to sleep wakes. */
export class Hints {
  readonly #store: () => HintStore | undefined;
  readonly #clock: Clock;
  readonly #trouble: (error: unknown) => void;
  #restUntil = -Infinity;

  constructor(store: () => HintStore | undefined, clock: Clock, trouble: (error: unknown) => void) {
    this.#store = store;
    this.#clock = clock;
    this.#trouble = trouble;
  }

  /** False: it is not certain that the budget has them, so nobody should go by it. */
  async add(name: string, count: number): Promise<boolean> {
    return await this.#asked(async (store) => {
      await store.add(name, count);
      return true;
    }, false);
  }

  async take(name: string): Promise<HintResult> {
    return await this.#asked((store) => store.take(name), "missing");
  }

  async #asked<T>(work: (store: HintStore) => Promise<T>, otherwise: T): Promise<T> {
    if (this.#clock.monotonic() < this.#restUntil) return otherwise;
    const store = this.#store();
    if (store === undefined) return otherwise;
    const began = this.#clock.monotonic();
    const answer = await within(this.#clock, ANSWER_MS, work(store), this.#trouble);
    if (answer !== undefined) return answer.value;
    const now = this.#clock.monotonic();
    if (now - began >= ANSWER_MS) this.#restUntil = now + REST_MS;
    return otherwise;
  }
}
