import { type Clock, type Instant, instant, type Timer } from "../../domain/clock.ts";
import { LevelsDiffer, QueueMissing } from "../../domain/errors.ts";
import { checkLevels, DEFAULT_LEVELS } from "../../domain/level.ts";
import type { DeclareRequest } from "../../engine/port.ts";
import { newAgenda, nextDueMs } from "./agenda.ts";
import { serve } from "./claims.ts";
import { comeDue, expire, unblock } from "./moves.ts";
import { empty } from "./empty.ts";
import { newQueue } from "./queue.ts";
import type { StoredQueue } from "./state.ts";

/**
 * A wall clock that is stepped forward makes delays due before the timer knows. While somebody waits, the
 * agenda is looked at this often at least.
 */
const LONGEST_ALARM_MS = 60_000;

/** The state behind all handles, changed in turns, with one alarm for what happens by itself. */
export class StoreCore {
  readonly #clock: Clock;
  readonly #agenda = newAgenda();
  readonly #queues = new Map<string, StoredQueue>();
  #alarm: { readonly at: number; readonly timer: Timer } | undefined;
  #waiting = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Every call to the engine is one turn: first what is due happens, then the work, then whoever waits is
   * served. Nothing in a turn awaits, so turns are atomic.
   */
  turn<T>(work: (now: Instant) => T): T {
    const now = instant(this.#clock);
    this.#advance(now);
    try {
      return work(now);
    } finally {
      for (const queue of this.#agenda.stirred) serve(queue, now);
      this.#agenda.stirred.clear();
      this.#setAlarm(now);
    }
  }

  declare({ queue: name, levels }: DeclareRequest): StoredQueue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = newQueue(name, checkLevels(levels ?? DEFAULT_LEVELS), this.#agenda);
      this.#queues.set(name, queue);
    } else if (levels !== undefined && !isSame(queue.levels, levels)) {
      throw new LevelsDiffer(name, queue.levels, levels);
    }
    return queue;
  }

  /** The caller has declared it. */
  queue(name: string): StoredQueue {
    const queue = this.#queues.get(name);
    if (queue === undefined) throw new QueueMissing(name);
    return queue;
  }

  /** Undefined: it was deleted, or never declared. */
  find(name: string): StoredQueue | undefined {
    return this.#queues.get(name);
  }

  delete(queue: StoredQueue): void {
    empty(queue);
    this.#queues.delete(queue.name);
  }

  queues(): Iterable<StoredQueue> {
    return this.#queues.values();
  }

  /** The alarm is set only while somebody waits for what it brings. */
  countWaiting(by: 1 | -1): void {
    this.#waiting += by;
    if (this.#waiting <= 1) this.#setAlarm(instant(this.#clock));
  }

  #advance(now: Instant): void {
    const { wall, monotonic } = now;
    const { delayed, blocked, leases, remembered } = this.#agenda;
    for (const item of delayed.takeWhile(({ dueAt }) => isPast(dueAt, wall))) comeDue(item, now);
    for (const item of blocked.takeWhile(({ dueAt }) => isPast(dueAt, wall))) unblock(item.key, now);
    for (const lease of leases.takeWhile(({ deadline }) => deadline <= monotonic)) expire(lease, now);
    for (const item of remembered.takeWhile(({ forgetAt }) => forgetAt <= wall)) item.key.queue.items.delete(item.id);
  }

  #setAlarm(now: Instant): void {
    const dueMs = this.#waiting === 0 ? undefined : nextDueMs(this.#agenda, now);
    const delayMs = dueMs === undefined ? undefined : Math.ceil(Math.min(dueMs, LONGEST_ALARM_MS));
    // An alarm that rings too early only sets the next one; moving it at every renewal would cost more.
    if (delayMs !== undefined && this.#alarm !== undefined && this.#alarm.at <= now.monotonic + delayMs) return;
    this.#alarm?.timer.cancel();
    this.#alarm = undefined;
    if (delayMs === undefined) return;
    const timer = this.#clock.setTimer(delayMs, () => {
      this.#alarm = undefined;
      this.turn(() => undefined);
    });
    this.#alarm = { at: now.monotonic + delayMs, timer };
  }
}

function isPast(dueAt: number | undefined, wall: number): boolean {
  return dueAt === undefined || dueAt <= wall;
}

function isSame(stored: readonly string[], wanted: readonly string[]): boolean {
  return stored.length === wanted.length && stored.every((level, index) => level === wanted[index]);
}
