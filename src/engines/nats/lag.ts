import { pause } from "../../domain/clock.ts";
import type { KeyStore } from "./key-store.ts";

/** A consumer follows its stream within this, unless its server is busy. */
const LOOK_MS = 10;
/** What is more urgent is not waited for any longer: something is wrong with its consumer, and the rest must go on. */
const MOST_LOOKS = 20;
/** What was delivered to somebody who is gone comes back within a second. */
const BACK_MS = 1_200;

interface Awaited {
  /** All up to this sequence are to be started by somebody; what comes later is not waited for. */
  readonly newest: number;
  /** By the monotonic clock. */
  readonly until: number;
}

/**
 * In a cluster every level's consumer follows the stream by itself, so a less urgent key may be handed out before a more urgent
 * one that was there first. The leader of the stream knows.
 */
export class Lag {
  readonly #store: KeyStore;
  /** By level. */
  readonly #awaited = new Map<number, Awaited>();

  constructor(store: KeyStore) {
    this.#store = store;
  }

  /** Whether a consumer can be behind at all. */
  get isPossible(): boolean {
    const { js, subjects } = this.#store;
    return js.isReplicated(subjects.stream);
  }

  /**
   * Whether the consumer may not have heard yet of a key that is ready; a moment after it was so. Under steady traffic there is always
   * one that somebody is about to start: of those that were there at the first look each is waited for, but not of those that came since.
   * @param seen the sequence of the last one that it brought, if it brought any
   */
  async wasBehind(level: number, seen: number | undefined): Promise<boolean> {
    // Nothing is less urgent than the last level, and could overtake it.
    if (!this.isPossible || level === this.#store.levels - 1) return false;
    if (await this.#isSettled(level, seen)) {
      this.#awaited.delete(level);
      return false;
    }
    await pause(this.#store.clock, LOOK_MS);
    return true;
  }

  async #isSettled(level: number, seen: number | undefined): Promise<boolean> {
    const awaited = this.#awaited.get(level);
    const now = this.#store.clock.monotonic();
    if (awaited !== undefined) return now >= awaited.until || (await this.#areStarted(level, awaited.newest));
    const newest = await this.#newest(level);
    if (newest === undefined || (seen !== undefined && newest <= seen)) return true;
    this.#awaited.set(level, { newest, until: now + BACK_MS });
    return false;
  }

  /** Resolves when whatever is ready now at a more urgent level has been started by somebody. */
  async caughtUp(level: number): Promise<void> {
    await Promise.all(Array.from({ length: level }, (_, above) => this.#caughtUp(above)));
  }

  async #caughtUp(level: number): Promise<void> {
    const newest = await this.#newest(level);
    if (newest === undefined) return;
    for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
      await pause(this.#store.clock, LOOK_MS);
      if (await this.#areStarted(level, newest)) return;
    }
  }

  /** The sequence of the last key that became ready and was not started. */
  async #newest(level: number): Promise<number | undefined> {
    const { js, subjects } = this.#store;
    return (await js.last(subjects.stream, subjects.readyAt(level)))?.sequence;
  }

  /** All up to this sequence. */
  async #areStarted(level: number, newest: number): Promise<boolean> {
    const { js, subjects } = this.#store;
    const first = await js.next(subjects.stream, subjects.readyAt(level), 1);
    return first === undefined || first.sequence > newest;
  }
}
