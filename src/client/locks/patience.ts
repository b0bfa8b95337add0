import type { Clock, Timer } from "../../domain/clock.ts";

/** A store that is away must not hold on to whoever has given up: it has so long to answer. */
export const UNANSWERED_MS = 1_000;
/** A try that gets no answer for so long has failed. */
const TRY_MS = 5_000;
/** Any long time will do: the timer only keeps the process alive. */
const KEEP_ALIVE_MS = 2 ** 30;

/**
 * Whoever waits for something is a reason for the process to live, whether or not its store has an open handle: a store may be
 * pausing before it tries again.
 */
export function keepAlive(): Disposable {
  const alive = setInterval(() => undefined, KEEP_ALIVE_MS);
  return { [Symbol.dispose]: () => clearInterval(alive) };
}

/** How long somebody waits: over when the time is up, when another signal fires, or when it is told to end. */
export class Patience implements Disposable {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #timer: Timer | undefined;
  readonly #alive: Disposable = keepAlive();

  /** Zero: it is over before it begins. Infinity: for ever. */
  constructor(clock: Clock, waitMs: number, outer?: AbortSignal) {
    this.#outer = outer;
    if (waitMs === 0 || outer?.aborted === true) {
      this.end();
      return;
    }
    outer?.addEventListener("abort", this.end);
    if (waitMs !== Infinity) this.#timer = clock.setTimer(waitMs, this.end);
  }

  /** Fires when it is over. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly end = (): void => this.#controller.abort();

  [Symbol.dispose](): void {
    this.#outer?.removeEventListener("abort", this.end);
    this.#timer?.cancel();
    this.#alive[Symbol.dispose]();
  }
}

/** Waits, and keeps the process alive. Resolves early when the signal fires. */
export async function waitFor(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  using patience = new Patience(clock, ms, signal);
  if (patience.signal.aborted) return;
  await new Promise<void>((resolve) => patience.signal.addEventListener("abort", () => resolve()));
}

/** How long something may go on that is to end. Whoever asks again can only shorten it. */
export class Grace {
  readonly #clock: Clock;
  #endsAt = Infinity;
  #shortened = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It ends this long from now, unless it ends before. */
  shorten(ms: number): void {
    const endsAt = this.#clock.monotonic() + ms;
    if (endsAt >= this.#endsAt) return;
    this.#endsAt = endsAt;
    this.#shortened.abort();
    this.#shortened = new AbortController();
  }

  /** Waits for something until then. How it ends does not matter. */
  async wait(something: Promise<unknown>): Promise<void> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
      this.#shortened.abort();
    };
    something.then(end, end);
    for (;;) {
      const leftMs = this.#endsAt - this.#clock.monotonic();
      if (isOver || leftMs <= 0) return;
      await waitFor(this.#clock, leftMs, this.#shortened.signal);
    }
  }
}

/** Waits for something until the signal fires. */
export async function until<T>(something: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  let give: (() => void) | undefined;
  const over = new Promise<undefined>((resolve) => {
    give = () => resolve(undefined);
    signal.addEventListener("abort", give);
    if (signal.aborted) give();
  });
  try {
    return await Promise.race([something, over]);
  } finally {
    if (give !== undefined) signal.removeEventListener("abort", give);
  }
}

/**
 * What a store gives to somebody who waits for it. Undefined: he has given up, or his time is over, and the store has still not answered. What comes
 * later finds nobody there to use it, and is let go of.
 */
export async function answer<T extends object>(
  clock: Clock,
  { waitMs, signal }: { readonly waitMs: number; readonly signal?: AbortSignal | undefined },
  something: Promise<T>,
  letGo: (late: T) => Promise<unknown>,
): Promise<T | undefined> {
  using patience = new Patience(clock, Math.max(waitMs, TRY_MS), signal);
  const late = new AbortController();
  const giveUp = (): void => void clock.setTimer(UNANSWERED_MS, () => late.abort());
  patience.signal.addEventListener("abort", giveUp);
  if (patience.signal.aborted) giveUp();
  const given = await until(something, late.signal);
  if (given === undefined) something.then(letGo).catch(() => undefined);
  return given;
}

/** Waits for something, but no longer than this. How it ends does not matter. */
export async function atMost(clock: Clock, ms: number, something: Promise<unknown>): Promise<void> {
  const enough = new AbortController();
  const end = (): void => enough.abort();
  something.then(end, end);
  await waitFor(clock, ms, enough.signal);
}
