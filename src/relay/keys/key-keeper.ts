import { randomUUID } from "node:crypto";
import { type Baton, connect, type HeldLock, InvalidInput, LockBusy, type Queue } from "../../index.ts";
import type { Timer } from "../../domain/clock.ts";
import type { RelayContext } from "../context.ts";
import type { KeySettings } from "../settings.ts";

/** No messages are taken on for so long after the store could not be asked; doubles up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

interface Waiting {
  readonly rank: number;
  readonly first: () => void;
}

/** The part of a held key that a delivery needs. */
export type HeldKey = Pick<HeldLock, "fence" | "signal" | "release">;

/**
 * Holds keys in a Baton queue, one per message in work: whoever else uses that queue's keys, other relays and Baton
 * workers among them, waits meanwhile. Those that wait in this process stand in a line per key, the most urgent source
 * first, and only the first asks the store.
 */
export class KeyKeeper {
  readonly #baton: Baton;
  readonly #queue: Queue<unknown>;
  readonly #settings: KeySettings;
  readonly #lines = new Map<string, Waiting[]>();
  readonly #context: RelayContext;
  #waiting = 0;
  #pause: Timer | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #onChange: (() => void) | undefined;

  private constructor(context: RelayContext, baton: Baton, settings: KeySettings) {
    this.#context = context;
    this.#baton = baton;
    this.#queue = baton.queue(settings.queue, { lease: settings.leaseMs });
    this.#settings = settings;
  }

  static async open(settings: KeySettings, context: RelayContext): Promise<KeyKeeper> {
    const { store } = settings;
    const keeper = new KeyKeeper(
      context,
      typeof store === "string" ? await connectTo(store, context) : store,
      settings,
    );
    try {
      await keeper.#queue.levels();
      return keeper;
    } catch (error) {
      await keeper.close();
      throw error;
    }
  }

  /**
   * Whether keys of the other queue are kept in this one, because it is the same: messages from there hold theirs
   * already, and would wait for themselves. One store has many addresses, so the store is asked, with a key that nobody
   * else uses: what is held in one and busy in the other is one queue.
   */
  async isSame(other: Queue<unknown> | undefined): Promise<boolean> {
    if (other === undefined || other.name !== this.#queue.name) return false;
    const key = `relay-probe-${randomUUID()}`;
    await using _held = await this.#queue.hold(key, { wait: 0 });
    try {
      await using _second = await other.hold(key, { wait: 0 });
      return false;
    } catch (error) {
      if (error instanceof LockBusy) return true;
      throw error;
    }
  }

  /** Messages that wait for their key in this process. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Whether messages can be taken on: not for a moment after the store could not be asked, because all of them would go
   * back.
   */
  get isWell(): boolean {
    return this.#pause === undefined;
  }

  /** Called whenever `isWell` changes. */
  set onChange(listener: () => void) {
    this.#onChange = listener;
  }

  /** Whether one more may wait here. */
  get hasRoom(): boolean {
    return this.#waiting < this.#settings.waiting;
  }

  /** The key, if nobody has it and nobody here is before us. */
  async tryHold(key: string): Promise<HeldKey | undefined> {
    return this.#lines.has(key) ? undefined : await this.#hold(key, 0);
  }

  /**
   * Waits for the key in line. Undefined: it was not to be had in the time that the settings give, or the signal fired.
   */
  async waitFor(key: string, rank: number, signal: AbortSignal): Promise<HeldKey | undefined> {
    const giveUp = AbortSignal.any([signal, AbortSignal.timeout(this.#settings.waitMs)]);
    this.#waiting += 1;
    const { line, place } = this.#enter(key, rank);
    try {
      await firstOrOver(place.promise, giveUp);
      if (giveUp.aborted) return undefined;
      return await this.#hold(key, this.#settings.waitMs, giveUp);
    } finally {
      this.#waiting -= 1;
      this.#leave(key, line, place.waiting);
    }
  }

  async close(): Promise<void> {
    this.#pause?.cancel();
    if (typeof this.#settings.store === "string") await this.#baton.close({ grace: 0 });
  }

  async #hold(key: string, wait: number, signal?: AbortSignal): Promise<HeldKey | undefined> {
    try {
      const held = await this.#queue.hold(key, signal === undefined ? { wait } : { wait, signal });
      this.#pauseMs = FIRST_PAUSE_MS;
      return held;
    } catch (error) {
      if (error instanceof LockBusy || signal?.aborted === true) return undefined;
      if (!(error instanceof InvalidInput)) this.#rest();
      throw error;
    }
  }

  #rest(): void {
    if (this.#pause !== undefined) return;
    this.#pause = this.#context.clock.setTimer(this.#pauseMs, () => {
      this.#pause = undefined;
      this.#onChange?.();
    });
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    this.#onChange?.();
  }

  #enter(key: string, rank: number): { line: Waiting[]; place: { waiting: Waiting; promise: Promise<void> } } {
    const line = this.#lines.get(key) ?? [];
    this.#lines.set(key, line);
    const turn = Promise.withResolvers<void>();
    const waiting: Waiting = { rank, first: () => turn.resolve() };
    // The first has asked the store already and stays first.
    const behind = line.findIndex((other, index) => index > 0 && other.rank > rank);
    line.splice(behind === -1 ? line.length : behind, 0, waiting);
    if (line.length === 1) waiting.first();
    return { line, place: { waiting, promise: turn.promise } };
  }

  #leave(key: string, line: Waiting[], waiting: Waiting): void {
    const wasFirst = line[0] === waiting;
    line.splice(line.indexOf(waiting), 1);
    if (line.length === 0) this.#lines.delete(key);
    else if (wasFirst) line[0]?.first();
  }
}

async function connectTo(url: string, context: RelayContext): Promise<Baton> {
  return await connect(url, {
    onEvent: (event) => {
      if (event.type === "trouble") context.tell({ type: "trouble", doing: event.doing, error: event.error });
    },
  });
}

async function firstOrOver(turn: Promise<void>, over: AbortSignal): Promise<void> {
  if (over.aborted) return;
  const ended = Promise.withResolvers<void>();
  const end = (): void => ended.resolve();
  over.addEventListener("abort", end);
  await Promise.race([turn, ended.promise]);
  over.removeEventListener("abort", end);
}
