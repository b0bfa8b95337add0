import { OutcomeUnknown } from "../../domain/errors.ts";
import type { Outcome, OutcomeRequest } from "../../engine/port.ts";
import type { Desk } from "./desk.ts";
import { list, readOutcome } from "./replies.ts";
import { type Waiter, Waiting } from "./waiting.ts";

type WaitingOutcome = Waiter<OutcomeRequest, Outcome | undefined>;

/** Those who wait for how an item ends. They are told when it has, and ask then. */
export class Outcomes extends Waiting<OutcomeRequest, Outcome | undefined> {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    super();
    this.#desk = desk;
  }

  protected ask(waiting: WaitingOutcome): void {
    this.asking(waiting);
    this.#desk.send({
      what: "a look at an outcome",
      args: ["outcome", waiting.request.id],
      answer: (result) => {
        waiting.isAsked = false;
        if (list(result)[0] !== "W") waiting.answer(readOutcome(result));
        else if (this.isOver(waiting)) waiting.answer(undefined);
        else if (waiting.again) this.ask(waiting);
      },
      fail: (error) => {
        waiting.isAsked = false;
        // It only looked: whoever waits asks again when they are told, or now and then.
        if (!(error instanceof OutcomeUnknown)) waiting.fail(error);
      },
    });
  }

  /** Nothing can be lost with an answer that comes too late. */
  protected giveUp(waiting: WaitingOutcome): void {
    waiting.answer(undefined);
  }
}
