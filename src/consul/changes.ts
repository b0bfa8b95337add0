/** Blocking queries: one for each lock that somebody of this process waits for or watches, however many they are. */
import { setTimeout as sleep } from "node:timers/promises";
import type { ConsulApi, Entries } from "./api.ts";
import { Unanswered, WAIT_CONNECTIONS } from "./http.ts";
import { assertReadable, lockPrefix, type LockState, lockState } from "./lock-keys.ts";
import { nextIndex } from "./next-index.ts";
import { type Outside, Patience } from "./patience.ts";

/** Consul answers sooner when something has changed; it takes at most ten minutes. */
const WAIT_MS = 60_000;
/** When there are more locks to follow than connections, they take turns. */
const TURN_MS = 2_000;
/** Consul wakes those who wait below a prefix without keys at every write of anybody's. */
const LONGEST_REST_MS = 250;

export class Changes {
  readonly #api: ConsulApi;
  readonly #prefix: string;
  readonly #outside: Outside;
  readonly #followed = new Map<string, Followed>();

  constructor(api: ConsulApi, prefix: string, outside: Outside) {
    this.#api = api;
    this.#prefix = prefix;
    this.#outside = outside;
  }

  /** How the lock stands after the next change; or as it stood, when the time is over or the signal fires. */
  async next(state: LockState, withinMs: number, signal: AbortSignal): Promise<LockState> {
    if (signal.aborted) return state;
    let followed = this.#followed.get(state.name);
    if (followed === undefined) {
      followed = new Followed(state);
      this.#followed.set(state.name, followed);
      void this.#follow(followed);
    }
    try {
      return await followed.next(state, withinMs, signal);
    } finally {
      if (followed.isIdle) this.#forget(followed);
    }
  }

  async #follow(followed: Followed): Promise<void> {
    const patience = new Patience(this.#outside, "a blocking query", Infinity);
    const { name } = followed.state;
    const lock = lockPrefix(this.#prefix, name);
    const { signal } = followed.ended;
    let { index } = followed.state;
    let newest = index;
    let restMs = 1;
    while (!signal.aborted) {
      try {
        const waitMs = this.#followed.size > WAIT_CONNECTIONS ? TURN_MS : WAIT_MS;
        const found = await this.#api.list(lock, { after: { index, waitMs }, signal });
        patience.reset();
        const wentBack = found.index < newest;
        newest = found.index;
        const changed = wentBack || followed.differs(found);
        if (changed) {
          const state = lockState(name, lock, found);
          assertReadable(state);
          followed.tell(state, wentBack);
        }
        restMs = changed || found.index === index ? 1 : Math.min(restMs * 2, LONGEST_REST_MS);
        if (restMs > 1) await sleep(restMs, undefined, { signal });
        index = nextIndex(index, found);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Unanswered)) {
          this.#forget(followed);
          followed.fail(error);
          return;
        }
        await patience.pause(error, signal);
      }
    }
  }

  #forget(followed: Followed): void {
    followed.ended.abort();
    const { name } = followed.state;
    if (this.#followed.get(name) === followed) this.#followed.delete(name);
  }
}

interface Listener {
  readonly heard: (state: LockState) => void;
  readonly failed: (error: unknown) => void;
}

class Followed {
  readonly ended = new AbortController();
  readonly #listeners = new Set<Listener>();
  state: LockState;
  /** Undefined: nothing yet. No keys at all is a state like any other. */
  #seen: string | undefined;

  constructor(state: LockState) {
    this.state = state;
  }

  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  async next(known: LockState, withinMs: number, signal: AbortSignal): Promise<LockState> {
    if (this.state.index > known.index) return this.state;
    const { promise, resolve, reject } = Promise.withResolvers<LockState>();
    const listener: Listener = { heard: resolve, failed: reject };
    const stop = (): void => resolve(known);
    const timer = withinMs === Infinity ? undefined : setTimeout(stop, Math.max(withinMs, 0));
    signal.addEventListener("abort", stop);
    this.#listeners.add(listener);
    try {
      return await promise;
    } finally {
      this.#listeners.delete(listener);
      signal.removeEventListener("abort", stop);
      clearTimeout(timer);
    }
  }

  differs({ entries }: Entries): boolean {
    const seen = entries.map(({ key, modifyIndex }) => `${key}@${modifyIndex}`).join();
    if (seen === this.#seen) return false;
    this.#seen = seen;
    return true;
  }

  /** Who knows of a later state already is left alone, unless the count began anew. */
  tell(state: LockState, wentBack: boolean): void {
    if (!wentBack && state.index <= this.state.index) return;
    this.state = state;
    for (const { heard } of this.#listeners) heard(state);
  }

  fail(error: unknown): void {
    for (const { failed } of this.#listeners) failed(error);
  }
}
