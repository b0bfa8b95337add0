import type { Outcome, OutcomeRequest } from "../../engine/port.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import type { Desk } from "./desk.ts";
import { list, readOutcome } from "./replies.ts";

interface WaitingOutcome {
  readonly id: string;
  readonly answer: (outcome: Outcome | undefined) => void;
  readonly fail: (error: unknown) => void;
}

/** Those who wait for how an item ends. They are told when it has, and ask then. */
export class Outcomes {
  readonly #desk: Desk;
  readonly #waiting = new Set<WaitingOutcome>();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  get anyWaits(): boolean {
    return this.#waiting.size > 0;
  }

  outcome({ id, signal }: OutcomeRequest): Promise<Outcome | undefined> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(waiting);
        signal.removeEventListener("abort", giveUp);
      };
      const waiting: WaitingOutcome = {
        id,
        answer: (outcome) => {
          leave();
          resolve(outcome);
        },
        fail: (error) => {
          leave();
          reject(isError(error) ? error : new Error(String(error)));
        },
      };
      const giveUp = (): void => waiting.answer(undefined);
      if (signal.aborted) return giveUp();
      signal.addEventListener("abort", giveUp);
      this.#waiting.add(waiting);
      this.#ask(waiting);
    });
  }

  /** Those who wait for one of these items, or all, ask again. */
  look(ids?: readonly string[]): void {
    const ended = ids === undefined ? undefined : new Set(ids);
    for (const waiting of this.#waiting) if (ended?.has(waiting.id) !== false) this.#ask(waiting);
  }

  /** Their queue was deleted. */
  fail(error: Error): void {
    for (const waiting of this.#waiting) waiting.fail(error);
  }

  giveUp(): void {
    for (const waiting of this.#waiting) waiting.answer(undefined);
  }

  #ask(waiting: WaitingOutcome): void {
    this.#desk.ask({
      what: "a look at an outcome",
      args: ["outcome", waiting.id],
      entries: 1,
      grows: false,
      answer: (result) => {
        if (list(result)[0] !== "W") waiting.answer(readOutcome(result));
      },
      fail: (error) => {
        // It only looked: whoever waits asks again when they are told, or now and then.
        if (!(error instanceof OutcomeUnknown)) waiting.fail(error);
      },
    });
  }
}
