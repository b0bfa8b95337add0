import type { Ending } from "../engine/port.ts";
import { tellMissing, type WorkerEvent } from "./events.ts";
import { type HeldItem, whyNotBegun } from "./held-item.ts";
import type { Finished } from "./run.ts";

/** What became of the items that were in work when the stop began. */
export interface StopReport {
  /** Their handlers ended, in the grace period or after their signal, and the store knows how: done, to be tried again, dead, cancelled. */
  readonly finished: number;
  /** They went back, without a counted attempt. */
  readonly released: number;
  /**
   * They were not settled: the handler ignored its signal, the lease was lost before it ended, or the store did not answer. Their
   * leases run out by themselves, and the attempt counts.
   */
  readonly abandoned: number;
}

/** Tells how items ended, as events, and counts them for the report from the stop on. */
export class EndingsTold {
  readonly #emit: (event: WorkerEvent) => void;
  #isCounting = false;
  #finished = 0;
  #released = 0;
  #lost = 0;
  /** Ended, and not known to be settled. */
  #unsettled = 0;

  constructor(emit: (event: WorkerEvent) => void) {
    this.#emit = emit;
  }

  /** The worker stops: what ends from now on is in its report. */
  count(): void {
    this.#isCounting = true;
  }

  /** Its settlement is to be sent. */
  settling(held: HeldItem): void {
    this.#unsettled += itemsOf(held);
  }

  /** Its settlement was answered, or will not be. */
  answered(held: HeldItem): void {
    this.#unsettled -= itemsOf(held);
  }

  /** The store knows how it ended, and how those of its run did that ended before. */
  settled(held: HeldItem, ending: Ending): void {
    const { item } = held.grant;
    if (this.#isCounting && ending.type === "release") this.#released += 1;
    else if (this.#isCounting) this.#finished += 1;
    this.finished(held.run?.finished ?? []);
    tellMissing(this.#emit, item, ending);
    this.#emit(eventOf(held, ending));
  }

  /** The store knows of the end of these, which others of their run followed. */
  finished(all: readonly Finished[]): void {
    for (const { item, ending } of all) {
      tellMissing(this.#emit, item, ending);
      this.#emit({ type: ending.type, item });
    }
    if (this.#isCounting) this.#finished += all.length;
  }

  /** The lease is lost: that is told once, now if it was not before. What has ended under it comes to nothing. */
  discarded(held: HeldItem, why: string, cause: "expired" | "taken"): void {
    const { item } = held.grant;
    const { fence, run } = held;
    held.lose(why);
    if (held.takeLoss()) this.#emit({ type: "lost", item, fence, why: held.begun ? cause : whyNotBegun(held) });
    for (const { item: ended } of run?.finished ?? []) {
      this.#emit({ type: "lost", item: ended, fence, why: cause });
      this.#emit({ type: "discarded", item: ended, fence });
    }
    if (held.begun) this.#emit({ type: "discarded", item, fence });
    if (this.#isCounting) this.#lost += itemsOf(held);
  }

  /** @param running those whose handlers did not end in time */
  report(running: Iterable<HeldItem>): StopReport {
    let abandoned = this.#lost + this.#unsettled;
    for (const held of running) abandoned += itemsOf(held);
    return { finished: this.#finished, released: this.#released, abandoned };
  }
}

/** What its end decides: those of its run that the store has not heard of, and itself. */
function itemsOf({ run }: HeldItem): number {
  return 1 + (run?.finished.length ?? 0);
}

function eventOf({ grant: { item } }: HeldItem, ending: Ending): WorkerEvent {
  switch (ending.type) {
    case "done":
      return { type: "done", item };
    case "retry":
      return { type: "retry", item, failure: ending.failure, delayMs: ending.delayMs };
    case "dead":
      return { type: "dead", item, failure: ending.failure };
    case "cancelled":
      return { type: "cancelled", item };
    case "release":
      return { type: "released", item };
  }
}
