/**
 * How late the machine makes everything. "At once" takes milliseconds where nothing else runs, and seconds where three
 * other programs want the same processor. A timer of this process tells the two apart: a limit grows with the lateness that
 * it met, and stays sharp on a machine that has time.
 */
import assert from "node:assert/strict";

const EVERY_MS = 10;
/** What is measured goes through so many processes and threads, each of which is late in its turn. */
const TURNS = 20;
/** A machine that is late in each of so many tries is of no use to a test of short times. */
const TRIES = 5;

export class Lateness implements Disposable {
  readonly #timer: NodeJS.Timeout;
  #last = performance.now();
  #latestMs = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), EVERY_MS);
    this.#timer.unref();
  }

  /** By so much a timer was late at most. */
  get ms(): number {
    this.#look();
    return this.#latestMs;
  }

  /** What the machine may have added to something that goes through several processes. */
  get addedMs(): number {
    return TURNS * this.ms;
  }

  /** Fails when it took longer than it may, on a machine that is as late as this one. */
  assertWithin(tookMs: number, limitMs: number, what: string): void {
    const told = `${what} took ${tookMs.toFixed(0)} ms; ${limitMs} ms are allowed, and ${this.addedMs.toFixed(0)} ms for a machine whose timers were ${this.ms.toFixed(0)} ms late`;
    assert.ok(tookMs < limitMs + this.addedMs, told);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const now = performance.now();
    this.#latestMs = Math.max(this.#latestMs, now - this.#last - EVERY_MS);
    this.#last = now;
  }
}

/**
 * Plays something with a short time of its own, such as a lease of two seconds, that ends otherwise on a machine which stands
 * still for longer. If it failed, and timers were later than they may be, it is played again. A mistake fails on every machine
 * that is in time.
 */
export async function playInTime(mostLateMs: number, play: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    using lateness = new Lateness();
    try {
      return await play();
    } catch (error) {
      if (lateness.ms <= mostLateMs || tries === TRIES) throw error;
    }
  }
}
