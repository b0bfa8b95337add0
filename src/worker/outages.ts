import type { Clock, Timer } from "../domain/clock.ts";
import { BatonError, isAway } from "../domain/errors.ts";
import type { WorkerEvent } from "./events.ts";

/** The first reminder; each later one comes after twice the time, up to the longest. */
const FIRST_REMINDER_MS = 10_000;
const LONGEST_REMINDER_MS = 600_000;
/** Only what stays well for this long is over: one call may get through in the middle of an outage. */
const QUIET_MS = 1_000;
/** An outage that comes back within this time must stay well for twice as long to be over, up to as long as this. */
const AGAIN_MS = 60_000;
/** What failed once and was not tried again is forgotten after this. */
const FORGET_MS = 120_000;
/** Far longer than a store takes that is there. Engines are more patient, as their calls must not fail for a moment's trouble. */
const SILENT_MS = 3_000;
/** A timer that comes later than this says that this process stood still, and nothing of the store. */
const LATE_MS = 500;

/** All that fails because the store is away is one outage, whatever was being done. */
const AWAY = "away";

interface Outage {
  readonly doing: string;
  readonly since: number;
  failures: number;
  lastAt: number;
  remindAt: number;
  remindMs: number;
  /** When a call succeeded, with no failure after it. */
  wellSince: number | undefined;
  over: Timer | undefined;
}

/**
 * What fails on one connection, told with measure: when it begins, rarely while it lasts, and when it is over.
 *
 *   well ──a call fails──▶ failing ──a call succeeds──▶ recovering ──a quiet second──▶ well
 *                             ▲──────a call fails────────────┘
 */
export class Outages {
  readonly #clock: Clock;
  readonly #emit: (event: WorkerEvent) => void;
  readonly #open = new Map<string, Outage>();
  readonly #pauses = new Set<() => void>();
  #quietMs = QUIET_MS;
  #lastOverAt = -Infinity;
  #isClosed = false;

  constructor(clock: Clock, emit: (event: WorkerEvent) => void) {
    this.#clock = clock;
    this.#emit = emit;
  }

  /** A call failed. What was being done is said as in "trouble renewing leases". */
  failed(doing: string, error: unknown): void {
    if (this.#isClosed) return;
    const now = this.#clock.monotonic();
    const name = nameOf(doing, error);
    const known = this.#open.get(name);
    if (known === undefined || now - known.lastAt > FORGET_MS) {
      this.#begin(name, doing, now);
      return this.#emit({ type: "trouble", doing, error, failures: 1, forMs: 0 });
    }
    known.failures += 1;
    known.lastAt = now;
    known.wellSince = undefined;
    known.over?.cancel();
    known.over = undefined;
    if (now < known.remindAt) return;
    known.remindMs = Math.min(known.remindMs * 2, LONGEST_REMINDER_MS);
    known.remindAt = now + known.remindMs;
    this.#emit({ type: "trouble", doing, error, failures: known.failures, forMs: Math.round(now - known.since) });
  }

  /** A call that is answered within moments, if the store is there. One that is not is told as one that failed; it goes on waiting. */
  answered<T>(doing: string, call: Promise<T>): Promise<T> {
    let timer: Timer;
    const wait = (): void => {
      const dueAt = this.#clock.monotonic() + SILENT_MS;
      timer = this.#clock.setTimer(SILENT_MS, () => {
        // The answer may be here, and be read in a moment.
        if (this.#clock.monotonic() > dueAt + LATE_MS) return wait();
        this.failed(doing, silent());
      });
    };
    wait();
    const over = (): void => timer.cancel();
    call.then(over, over);
    return call;
  }

  /** A call got its answer: the store is there, and this works. */
  worked(doing: string): void {
    if (this.#open.size === 0) return;
    for (const [name, outage] of this.#open) {
      if (outage.wellSince !== undefined || (name !== AWAY && outage.doing !== doing)) continue;
      outage.wellSince = this.#clock.monotonic();
      outage.over = this.#clock.setTimer(this.#quietMs, () => this.#end(name, outage));
      if (name === AWAY) for (const goOn of this.#pauses) goOn();
    }
  }

  /** Waits before the next try, or until the store is known to be there again. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const goOn = (): void => {
        this.#pauses.delete(goOn);
        timer.cancel();
        resolve();
      };
      const timer = this.#clock.setTimer(ms, goOn);
      this.#pauses.add(goOn);
    });
  }

  /** The connection closes: nothing more is told, of what its end makes fail either. */
  close(): void {
    this.#isClosed = true;
    for (const { over } of this.#open.values()) over?.cancel();
    this.#open.clear();
  }

  #begin(name: string, doing: string, now: number): void {
    for (const [other, outage] of this.#open) if (now - outage.lastAt > FORGET_MS) this.#forget(other, outage);
    if (this.#open.size === 0) {
      const isAgain = now - this.#lastOverAt < AGAIN_MS;
      this.#quietMs = isAgain ? Math.min(this.#quietMs * 2, AGAIN_MS) : QUIET_MS;
    }
    this.#open.set(name, {
      doing,
      since: now,
      failures: 1,
      lastAt: now,
      remindAt: now + FIRST_REMINDER_MS,
      remindMs: FIRST_REMINDER_MS,
      wellSince: undefined,
      over: undefined,
    });
  }

  #end(name: string, outage: Outage): void {
    const { doing, failures, since, wellSince } = outage;
    this.#forget(name, outage);
    this.#lastOverAt = this.#clock.monotonic();
    this.#emit({ type: "recovered", doing, failures, lastedMs: Math.round((wellSince ?? this.#lastOverAt) - since) });
  }

  #forget(name: string, outage: Outage): void {
    outage.over?.cancel();
    this.#open.delete(name);
  }
}

function silent(): BatonError {
  return new BatonError("STORE_UNAVAILABLE", `The store has not answered for ${SILENT_MS / 1_000} s.`);
}

function nameOf(doing: string, error: unknown): string {
  if (isAway(error)) return AWAY;
  return `${error instanceof BatonError ? error.code : ""} ${doing}`;
}
