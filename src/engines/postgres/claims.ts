import type { Clock } from "../../domain/clock.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { bigints } from "./arrays.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { integer, optionalInteger } from "./rows.ts";
import { type Waiter, Waiting } from "./waiting.ts";

export type WaitingClaim = Waiter<ClaimRequest, readonly Grant[]>;

/** The arguments of a step that say who asks for how much; and what it says of those who sleep. */
export interface AskedFor {
  readonly values: readonly unknown[];
  /** Should nothing be found, the store is told that somebody sleeps. */
  readonly saysAsleep: boolean;
  /** Should something be found, nobody sleeps any more. */
  readonly wakesLast: boolean;
}

/** Where nobody asks. */
export const NO_CLAIM: AskedFor["values"] = [null, null, 0, 0, 0, 0, null, false, false, 1];

/** How often a look begins further back than the last ones found something. */
const BACK_LOOK_EVERY_MS = 250;
/** How far back: a key that became ready in a transaction that took longer stands before that. */
const BACK_MS = 10_000;
/** Nothing stands before the beginning. */
const WHOLE_LOOK_EVERY_MS = 30_000;

/** Others have keys in hand for a few milliseconds, unless very many look for them. */
const FIRST_PASSED_MS = 10;
const LONGEST_PASSED_MS = 2_000;

type Places = readonly number[];

/**
 * Where looks for work of a queue begin, level by level. Places that were taken and not yet vacuumed lie before those that are free; whoever
 * began at the beginning would walk over them, a million in a busy minute. A key whose transaction was slow to commit may stand among them, so
 * every so often a look begins earlier.
 */
class Beginnings {
  readonly #zero: Places;
  #near: Places;
  #far: Places;
  #lows: Places;
  readonly #history: { readonly at: number; readonly lows: Places }[] = [];
  #backAt = -Infinity;
  #wholeAt = -Infinity;
  #isBack = true;

  constructor(levels: number) {
    this.#zero = Array.from({ length: levels }, () => 0);
    this.#near = this.#zero;
    this.#far = this.#zero;
    this.#lows = this.#zero;
  }

  /** @param isIdle others sleep here: the queue is not busy, and one look that begins early is cheaper than two */
  next(now: number, isIdle: boolean): Places {
    if (now - this.#wholeAt >= WHOLE_LOOK_EVERY_MS) {
      this.#wholeAt = now;
      this.#backAt = now;
      this.#isBack = true;
      return this.#zero;
    }
    this.#isBack = isIdle || now - this.#backAt >= BACK_LOOK_EVERY_MS;
    if (!this.#isBack) return this.#near;
    this.#backAt = now;
    while (this.#history[0] !== undefined && now - this.#history[0].at >= BACK_MS) {
      this.#far = this.#history.shift()?.lows ?? this.#far;
    }
    return this.#far;
  }

  get near(): Places {
    return this.#near;
  }

  /** The lowest places that a look saw; undefined where it saw none. */
  learn(now: number, seen: readonly (number | undefined)[]): void {
    if (!this.#isBack) return;
    const before = this.#lows;
    this.#lows = this.#zero.map((_, level) => seen[level] ?? before[level] ?? 0);
    // What is lower than both was seen twice to be gone.
    this.#near = this.#lows.map((low, level) => Math.max(0, Math.min(low, before[level] ?? 0) - 1));
    this.#history.push({ at: now, lows: this.#near });
  }

  /** The last look may have begun behind something. */
  lookBack(): boolean {
    if (this.#isBack) return false;
    this.#backAt = -Infinity;
    return true;
  }
}

/** Those who wait for work of one queue, and what is known about where it is. */
export class QueueClaims {
  readonly queue: DeclaredQueue;
  readonly #clock: Clock;
  readonly #waiting = new Waiting<ClaimRequest, readonly Grant[]>([]);
  /** It was said in the store that somebody here sleeps. */
  asleep = false;
  /** How many keys may be ready that nobody here has looked for yet. Infinity: who knows. */
  #expected = 0;
  #strict = 0;
  #passedMs = FIRST_PASSED_MS;
  readonly #beginnings: Beginnings;

  constructor(queue: DeclaredQueue, clock: Clock) {
    this.queue = queue;
    this.#clock = clock;
    this.#beginnings = new Beginnings(queue.levels.length);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** There may be something now. */
  get look(): boolean {
    return this.#expected > 0;
  }

  set look(may: boolean) {
    this.#expected = may ? Infinity : 0;
  }

  /** Somebody said that so many keys are ready: as many looks are worth it. */
  expect(count: number): void {
    this.#expected += count;
  }

  /** A look begins. Returns what to call when it has got something: what else was expected is worth another. */
  beginLook(): (got: number) => void {
    const expected = this.#expected;
    this.#expected = 0;
    return (got) => (this.#expected += Math.max(0, expected - got));
  }

  /** With the last who slept the mark in the store went too: whoever has come meanwhile has to look for himself. */
  wakeUp(): void {
    this.asleep = false;
    this.look = true;
  }

  /** The first for which nobody is looking. */
  get first(): WaitingClaim | undefined {
    return this.#waiting.first;
  }

  wait(request: ClaimRequest): Promise<readonly Grant[]> {
    const waiting = this.#waiting.wait(this.queue, request);
    // Where others sleep already, there is nothing: and who sleeps is told.
    if (!this.asleep || this.size === 1) this.look = true;
    return waiting;
  }

  /** Whoever waits should know why nothing comes; they ask again. Another look that is under way has an answer of its own. */
  fail(error: unknown): void {
    this.asleep = false;
    for (const { fail } of this.#waiting.idle()) fail(error);
  }

  release(claim: WaitingClaim): void {
    this.#waiting.release(claim);
  }

  close(): void {
    this.#waiting.close();
  }

  /** @param isBeside beside another look: this one neither begins further back nor says that somebody sleeps */
  asked({ request }: WaitingClaim, isBeside: boolean): AskedFor {
    const { worker, max, leaseMs, patienceMs, items = 1 } = request;
    const patience = Math.min(Math.ceil(patienceMs), Number.MAX_SAFE_INTEGER);
    const { near } = this.#beginnings;
    const bounds = bigints(isBeside ? near : this.#beginnings.next(this.#clock.monotonic(), this.asleep));
    const saysAsleep = !this.asleep && !isBeside;
    const wakesLast = this.asleep && this.size === 1;
    const who = [this.queue.id, worker, max, Math.ceil(leaseMs), patience, this.#strict, bounds];
    return { values: [...who, saysAsleep, wakesLast, items], saysAsleep, wakesLast };
  }

  /** From the rows that tell what the next claim should know. Milliseconds until something is due; -1: nothing will be; -2: not asked. */
  learn(rows: readonly Row[]): number {
    const [first] = rows;
    if (first === undefined) return -2;
    this.#strict = integer(first, 3);
    const lows = rows.map((row) => optionalInteger(row, 4));
    this.#beginnings.learn(this.#clock.monotonic(), lows);
    return integer(first, 1);
  }

  /** Nothing came, but there was something that others had in hand: milliseconds until it is worth another look. Undefined: there was not. */
  passedOver(rows: readonly Row[]): number | undefined {
    const [first] = rows;
    if (first === undefined || integer(first, 6) === 0) {
      this.#passedMs = FIRST_PASSED_MS;
      return undefined;
    }
    const waitMs = this.#passedMs;
    this.#passedMs = Math.min(waitMs * 2, LONGEST_PASSED_MS);
    return waitMs;
  }

  /** Fewer came than were asked for, by a look that did not begin far enough back. True: look once more. */
  lookBack(): boolean {
    return this.#beginnings.lookBack();
  }
}
