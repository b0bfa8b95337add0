/**
 * What one process does on a key from the moment it got it: item after item, without letting go. When an item is done and
 * the next is known, the next starts at once; that the first is done is written meanwhile, together with whatever else is
 * done by then. Until it is written it is not settled: if the process dies, those items run again, in their order.
 *
 * The key is this process's all the time, by the record that is there. Each item has a fence of its own: the sequence of a
 * message stands for as many fences as items may run ahead of the next message.
 */
import { OutcomeUnknown } from "../../domain/errors.ts";
import type { SettleResult } from "../../engine/port.ts";
import { asError } from "./as-error.ts";
import { leavesNothing } from "./endings.ts";
import type { KeyStore } from "./key-store.ts";
import type { LateWrites } from "./late-writes.ts";
import { advance, mostUrgent } from "./rules.ts";
import { MOST_AHEAD, RUN_AHEAD_MS, WORTH_WRITING } from "./run-ahead.ts";
import { FENCES_PER_MESSAGE, type KeyItem, type KeyState, NOTHING, type Seen, type StateLease } from "./state.ts";

/** A worker may go on with a key for so long, or for so many items if they are quick; then it is another key's turn. */
const STREAK_MS = 50;
const STREAK_ITEMS = 64;
const LONGEST_STREAK_MS = 100;

const READY = Promise.resolve();
/** It has yet to be done. */
const PUT_OFF = Promise.reject(new Error("What lies below the record is still there."));
PUT_OFF.catch(() => undefined);

/** The item that is worked on now. */
export interface Running {
  readonly item: KeyItem;
  readonly lease: StateLease;
  /** While this holds, nobody else can have the key. */
  readonly isGood: () => boolean;
  /** Somebody took the item away. It still has the key until it has ended, but nothing is said about it any more. */
  readonly takeAway: () => void;
}

/** An item that is done, as long as that is not written. */
interface Done {
  readonly unique: string;
  readonly fence: number;
  asked: Asked[];
}

interface Asked {
  readonly answer: (result: SettleResult) => void;
  readonly fail: (error: unknown) => void;
}

export class Streak {
  readonly key: string;
  /** By the monotonic clock. */
  readonly since: number;
  readonly #store: KeyStore;
  /** As the key was last written or read. */
  seen: Seen;
  /** What lay below is gone when this resolves. */
  ready: Promise<void> = READY;
  /** It did. */
  isReady = true;
  /** The same once more, when it failed, or for the first time, if it was put off. */
  prepare: () => Promise<void> = () => Promise.resolve();
  /** Of what was last written, by the monotonic clock. */
  #sentAt: number;
  #running: Running | undefined;
  #ended = 0;
  /** By what makes them unique, in the order in which they ended. */
  readonly #done = new Map<string, Done>();
  /** Of those that nobody heard of, because an earlier try had failed. */
  readonly #unheard = new Map<string, SettleResult>();
  #writing: Promise<void> | undefined;
  /** A write of these that may have happened: its reply was lost, and the key has not been seen since. */
  #open: { readonly uniques: ReadonlySet<string>; readonly error: OutcomeUnknown } | undefined;
  /** Nobody can tell any more whether they were settled. */
  readonly #unknown = new Map<string, OutcomeUnknown>();

  readonly #late: LateWrites;
  readonly #writeNow = (): void => {
    // Whoever asked hears of a failure.
    if (this.#done.size > 0) this.#begin().catch(() => undefined);
  };

  constructor(store: KeyStore, key: string, seen: Seen, since: number, late: LateWrites) {
    this.#late = late;
    this.#store = store;
    this.key = key;
    this.seen = seen;
    this.since = since;
    this.#sentAt = since;
  }

  /** What lay below is gone. */
  async settleIn(): Promise<void> {
    if (!this.isReady) await this.ready.catch(() => this.prepare());
  }

  /** What lies below stays there until somebody has to write. */
  putOff(prepare: () => Promise<void>): void {
    this.prepare = prepare;
    this.isReady = false;
    this.ready = PUT_OFF;
  }

  /** Whether something is done that is not written. */
  get isAhead(): boolean {
    return this.#done.size > 0;
  }

  /** Whether the worker may go on with the key: others wait for their turn. */
  lasts(now: number): boolean {
    const ms = now - this.since;
    return ms < STREAK_MS || (this.#ended < STREAK_ITEMS && ms < LONGEST_STREAK_MS);
  }

  /** Whether a lease is one of this streak, up to that of a fence. */
  isMine(lease: StateLease | undefined, fence: number): boolean {
    return lease !== undefined && lease.fence <= fence && lease.fence >= (this.seen.state.lease?.fence ?? fence);
  }

  /** The next item was written together with the end of the one before it. */
  goOn(seen: Seen, sentAt: number): void {
    this.seen = seen;
    this.#sentAt = sentAt;
    this.#ended += 1;
  }

  /**
   * The item that may start before it is written that the one before it is done. Not after a crash: an item that brings its
   * process down must be the one that is seen to have run, or its neighbour would be blamed.
   */
  next(done: KeyItem, fence: number, now: number): { readonly item: KeyItem; readonly fence: number } | undefined {
    const { state, sequence } = this.seen;
    if (this.#store.clock.monotonic() - this.#sentAt >= RUN_AHEAD_MS) return undefined;
    const fresh = Math.max(fence, sequence * FENCES_PER_MESSAGE) + 1;
    if (this.#done.size >= MOST_AHEAD || fresh >= (sequence + 1) * FENCES_PER_MESSAGE) return undefined;
    if (done.keepMs > 0 || done.attempts > 1 || !isPlain(state)) return undefined;
    const item = mostUrgent(state.items, ({ unique }) => unique === done.unique || this.#done.has(unique));
    if (item === undefined || (item.dueAt !== undefined && item.dueAt > now)) return undefined;
    const { id, attempts, replaceable, level } = item;
    if (id !== undefined || attempts > 0 || replaceable) return undefined;
    // The line was looked at when this level's turn came. It may have something for the levels between.
    if (state.more !== false && (level !== done.level || state.line < level)) return undefined;
    return { item: { ...item, attempts: 1, dueAt: undefined }, fence: fresh };
  }

  /** One item is done and another runs. Resolves when that is written. */
  advance(unique: string, fence: number, running: Running): Promise<SettleResult> {
    this.#ended += 1;
    this.#running = running;
    const done: Done = { unique, fence, asked: [] };
    this.#done.set(unique, done);
    this.#writeWhenWorth();
    return this.#heard(done);
  }

  /** Whether nothing is left of the key when this one is done as well, and all of it may be written at once. */
  isLast(item: KeyItem): boolean {
    return this.#writing === undefined && this.#endsWith(item);
  }

  /** What is done ends together with the last one, by one write. False: somebody has changed the key, and nothing was written. */
  finish(last: KeyItem, isGood: () => boolean): Promise<boolean> {
    const finishing = this.#finish(last, isGood);
    this.#writing = finishing.then(
      () => {
        this.#writing = undefined;
        // If it was not written, what is done still is to be.
        this.#writeWhenWorth();
      },
      // Whoever finishes hears of it.
      (error: unknown) => {
        if (error instanceof OutcomeUnknown) this.#open = { uniques: new Set(this.#done.keys()), error };
        this.#fail(error);
      },
    );
    return finishing;
  }

  /** The same, after it failed. */
  again(unique: string): Promise<SettleResult> {
    const done = this.#done.get(unique);
    if (done !== undefined) {
      this.#writeNow();
      return this.#heard(done);
    }
    const unknown = this.#unknown.get(unique);
    return unknown === undefined ? Promise.resolve(this.#unheard.get(unique) ?? "lost") : Promise.reject(unknown);
  }

  /** All that is done is written, or not to be written any more. */
  async written(): Promise<void> {
    while (this.#done.size > 0) await this.#begin();
  }

  async #finish(last: KeyItem, isGood: () => boolean): Promise<boolean> {
    await this.settleIn();
    // It may have been waited, and others may have come.
    if (!isGood() || !this.#endsWith(last)) return false;
    const written = await this.#store.write(this.key, this.seen, NOTHING, isGood);
    if (written === undefined) return false;
    this.#late.delete(this.#writeNow);
    this.#answer(() => "settled");
    return true;
  }

  #endsWith({ unique }: KeyItem): boolean {
    const { state } = this.seen;
    if (!leavesNothing(state, this.#done.size)) return false;
    return state.items.every((item) => item.unique === unique || this.#done.has(item.unique));
  }

  #heard(done: Done): Promise<SettleResult> {
    return new Promise((answer, fail) => {
      done.asked.push({ answer, fail });
    });
  }

  #begin(): Promise<void> {
    this.#writing ??= this.#write().then(
      () => {
        this.#writing = undefined;
        // What was done meanwhile waits for more, too.
        this.#writeWhenWorth();
      },
      (error: unknown) => {
        this.#fail(error);
        throw asError(error);
      },
    );
    return this.#writing;
  }

  #fail(error: unknown): void {
    this.#writing = undefined;
    // Whoever asked comes again.
    for (const done of this.#done.values()) for (const { fail } of done.asked.splice(0)) fail(error);
  }

  #writeWhenWorth(): void {
    if (this.#done.size >= WORTH_WRITING) this.#writeNow();
    else if (this.#done.size > 0) this.#late.add(this.#writeNow);
  }

  async #write(): Promise<void> {
    await this.settleIn();
    for (;;) {
      const { state } = this.seen;
      // What the record has left behind is settled: a write whose reply was lost did happen.
      this.#answer((done) => (done.fence < (state.lease?.fence ?? 0) ? "settled" : undefined));
      const running = this.#running;
      if (this.#done.size === 0 || running === undefined) return;
      if (!running.isGood()) return this.#lose();
      const uniques = new Set(this.#done.keys());
      const next = advance(state, uniques, running.item, running.lease);
      this.#late.delete(this.#writeNow);
      const sentAt = this.#store.clock.monotonic();
      const written = await this.#put(next, running, uniques);
      if (written === undefined) continue;
      this.seen = written;
      this.#sentAt = sentAt;
      if (next.lease?.cancelRequested === true) running.takeAway();
      this.#answer((done) => (uniques.has(done.unique) ? resultIn(state, done) : undefined));
      return;
    }
  }

  /** The key is somebody else's. What was in a write that may have happened is not said to be lost. */
  #lose(): void {
    const open = this.#open;
    if (open !== undefined) {
      for (const { unique, asked } of [...this.#done.values()].filter((done) => open.uniques.has(done.unique))) {
        this.#done.delete(unique);
        this.#unknown.set(unique, open.error);
        for (const { fail } of asked) fail(open.error);
      }
    }
    this.#answer(() => "lost");
  }

  #answer(resultOf: (done: Done) => SettleResult | undefined): void {
    for (const done of this.#done.values()) {
      const result = resultOf(done);
      if (result === undefined) continue;
      this.#done.delete(done.unique);
      if (done.asked.length === 0) this.#unheard.set(done.unique, result);
      for (const { answer } of done.asked) answer(result);
    }
  }

  async #put(next: KeyState, running: Running, uniques: ReadonlySet<string>): Promise<Seen | undefined> {
    try {
      const written = await this.#store.write(this.key, this.seen, next, running.isGood);
      if (written !== undefined) {
        this.#open = undefined;
        return written;
      }
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      this.#open = { uniques, error };
    }
    const now = await this.#store.read(this.key);
    if (!this.isMine(now.state.lease, running.lease.fence)) {
      this.#lose();
      running.takeAway();
      return undefined;
    }
    this.#open = undefined;
    // Whoever wrote this may have died before it was done.
    await this.#store.perform(this.key, now.state);
    this.seen = { sequence: now.sequence, state: { ...now.state, below: [], todo: [] } };
    return undefined;
  }
}

/** An item that somebody took away is theirs. */
function resultIn({ items }: KeyState, { unique }: Done): SettleResult {
  return items.some((item) => item.unique === unique) ? "settled" : "lost";
}

/** Nothing has to be looked up, or done elsewhere, before the next item can start. */
function isPlain({ kind, paused, alone, wanted, todo, cut, lease }: KeyState): boolean {
  return (
    kind === "running" &&
    !paused &&
    alone === 0 &&
    wanted.length === 0 &&
    todo.length === 0 &&
    cut.length === 0 &&
    lease?.cancelRequested === false
  );
}
