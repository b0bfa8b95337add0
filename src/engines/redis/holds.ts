import { isError } from "../../domain/realms.ts";
import type { Instant } from "../../domain/clock.ts";
import type { HoldRequest, Lease } from "../../engine/port.ts";
import type { Desk } from "./desk.ts";
import { holdArguments } from "./operations.ts";
import { number } from "./replies.ts";

interface WaitingHold {
  readonly request: HoldRequest;
  readonly answer: (lease: Lease | undefined) => void;
  readonly fail: (error: unknown) => void;
  isAsked: boolean;
  /** It was told to look while it was being asked for. */
  again: boolean;
}

/**
 * Holds that wait for their key. The key is marked as wanted, so that it is kept for a moment when its lease ends, and whoever waits is told; then
 * it asks again. A mark that nobody answers to costs its key that moment, once.
 */
export class Holds {
  readonly #desk: Desk;
  readonly #waiting = new Set<WaitingHold>();
  #isClosed = false;

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  get anyWaits(): boolean {
    return this.#waiting.size > 0;
  }

  hold(request: HoldRequest): Promise<Lease | undefined> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(waiting);
        request.signal.removeEventListener("abort", giveUp);
      };
      const waiting: WaitingHold = {
        request,
        isAsked: false,
        again: false,
        answer: (lease) => {
          leave();
          resolve(lease);
        },
        fail: (error) => {
          leave();
          reject(isError(error) ? error : new Error(String(error)));
        },
      };
      const giveUp = (): void => {
        if (!waiting.isAsked) this.#giveUp(waiting);
      };
      this.#waiting.add(waiting);
      // A signal that has fired before makes it a try.
      const waits = !request.signal.aborted;
      if (waits) request.signal.addEventListener("abort", giveUp);
      this.#ask(waiting, waits);
    });
  }

  /** Those who wait for one of these keys, or all, ask again. */
  look(keys?: readonly string[]): void {
    const wanted = keys === undefined ? undefined : new Set(keys);
    for (const waiting of this.#waiting) {
      if (wanted !== undefined && !wanted.has(waiting.request.key)) continue;
      if (waiting.isAsked) waiting.again = true;
      else this.#ask(waiting, true);
    }
  }

  /** Their queue was deleted. Those that are with the server have an answer of their own. */
  fail(error: Error): void {
    for (const waiting of this.#waiting) if (!waiting.isAsked) waiting.fail(error);
  }

  giveUp(): void {
    this.#isClosed = true;
    for (const waiting of this.#waiting) if (!waiting.isAsked) this.#giveUp(waiting);
  }

  #ask(waiting: WaitingHold, waits: boolean): void {
    const { key, worker, leaseMs } = waiting.request;
    waiting.isAsked = true;
    waiting.again = false;
    this.#desk.ask({
      what: "a hold",
      args: holdArguments(key, worker, leaseMs, waits),
      entries: 1,
      grows: false,
      answer: (result, { since }) => this.#answered(waiting, number(result), since, waits),
      fail: (error) => {
        waiting.isAsked = false;
        waiting.fail(error);
      },
    });
  }

  #answered(waiting: WaitingHold, fence: number, since: Instant, waits: boolean): void {
    const { queue, key, signal } = waiting.request;
    waiting.isAsked = false;
    if (fence > 0) return waiting.answer({ queue, key, fence, since, handle: undefined });
    if (!waits) return waiting.answer(undefined);
    if (signal.aborted || this.#isClosed) return this.#giveUp(waiting);
    if (waiting.again) this.#ask(waiting, true);
  }

  #giveUp(waiting: WaitingHold): void {
    waiting.answer(undefined);
    this.#desk.ask({
      what: "the end of a wait for a hold",
      args: ["unwant", waiting.request.key],
      entries: 1,
      grows: false,
      answer: () => undefined,
      fail: () => undefined,
    });
  }
}
