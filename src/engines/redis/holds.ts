import type { Instant } from "../../domain/clock.ts";
import type { HoldRequest, Lease } from "../../engine/port.ts";
import type { Desk } from "./desk.ts";
import { holdArguments } from "./operations.ts";
import { number } from "./replies.ts";
import { type Waiter, Waiting } from "./waiting.ts";

type Hold = Waiter<HoldRequest, Lease | undefined>;

/**
 * Holds that wait for their key. The key is marked as wanted, so that it is kept for a moment when its lease ends, and whoever waits is told; then
 * it asks again. A mark that nobody answers to costs its key that moment, once.
 */
export class Holds extends Waiting<HoldRequest, Lease | undefined> {
  readonly #desk: Desk;

  constructor(desk: Desk) {
    super();
    this.#desk = desk;
  }

  protected ask(hold: Hold): void {
    const { key, worker, leaseMs } = hold.request;
    // A signal that has fired before makes it a try.
    const waits = !this.isOver(hold);
    this.asking(hold);
    this.#desk.send({
      what: "a hold",
      args: holdArguments(key, worker, leaseMs, waits),
      answer: (result, { since }) => this.#answered(hold, number(result), since, waits),
      fail: (error) => {
        hold.isAsked = false;
        hold.fail(error);
      },
    });
  }

  protected giveUp(hold: Hold): void {
    if (hold.isAsked) return;
    hold.answer(undefined);
    const args = ["unwant", hold.request.key];
    this.#desk.ask("the end of a wait for a hold", args, () => undefined).catch(() => undefined);
  }

  #answered(hold: Hold, fence: number, since: Instant, waits: boolean): void {
    const { queue, key } = hold.request;
    hold.isAsked = false;
    if (fence > 0) return hold.answer({ queue, key, fence, since, handle: undefined });
    if (!waits) return hold.answer(undefined);
    if (this.isOver(hold)) return this.giveUp(hold);
    if (hold.again) this.ask(hold);
  }
}
