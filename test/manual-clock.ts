import type { Clock, Timer } from "../src/domain/clock.ts";

interface Alarm {
  readonly at: number;
  readonly callback: () => void;
}

/** Where the monotonic clock starts, and by how much the wall clock is ahead of it. */
const ZERO_MS = 1_000;
const EPOCH_MS = 1_700_000_000_000;

/** A clock that stands still until a test moves it. */
export class ManualClock implements Clock {
  #now = ZERO_MS;
  #ahead = EPOCH_MS;
  readonly #alarms = new Set<Alarm>();

  monotonic(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now + this.#ahead;
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    const alarm = { at: this.#now + Math.max(0, delayMs), callback };
    this.#alarms.add(alarm);
    return { cancel: () => void this.#alarms.delete(alarm) };
  }

  /** Timers that are set and not due yet. */
  get timers(): number {
    return this.#alarms.size;
  }

  /** Somebody, or NTP, sets the wall clock. */
  stepWall(byMs: number): void {
    this.#ahead += byMs;
  }

  /** Time passes. Timers fire when they are due, and what follows from one happens before the next. */
  async pass(ms: number): Promise<void> {
    const until = this.#now + ms;
    await aftermath();
    for (let alarm = this.#nextUntil(until); alarm !== undefined; alarm = this.#nextUntil(until)) {
      this.#now = Math.max(this.#now, alarm.at);
      this.#alarms.delete(alarm);
      alarm.callback();
      await aftermath();
    }
    this.#now = until;
  }

  /** Time passes while nothing can run: a blocked event loop, or a process that is stopped. Then timers come late. */
  async stall(ms: number): Promise<void> {
    this.#now += ms;
    await this.pass(0);
  }

  #nextUntil(until: number): Alarm | undefined {
    let next: Alarm | undefined;
    for (const alarm of this.#alarms) {
      if (alarm.at <= until && (next === undefined || alarm.at < next.at)) next = alarm;
    }
    return next;
  }
}

/** More turns of the event loop than anything in the product takes to come to rest. */
const TURNS = 6;

/** Whatever follows from what was done so far, without time passing. */
export async function aftermath(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}
