/** Holds that wait for their key. */
import { type Clock, pause } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import type { HoldRequest, Lease } from "../../engine/port.ts";
import { Bell } from "../../locks/bell.ts";
import { asError } from "./as-error.ts";
import { tokenOf } from "./key-token.ts";
import type { KeyStore } from "./key-store.ts";
import type { Leases } from "./leases.ts";
import { Lost } from "./requests.ts";
import type { Watches } from "./watches.ts";
import type { Wish } from "./wishes.ts";

/** What is heard of a key can be lost; then it is looked at after this. */
const SAFETY_MS = 5_000;
/** Between two tries to take back a wish while the server is away. */
const AGAIN_MS = 1_000;

export interface HoldParts {
  readonly leases: Leases;
  readonly store: KeyStore;
  readonly watches: Watches;
  readonly clock: Clock;
  /** Fires when the engine closes. */
  readonly closing: AbortSignal;
  /** Fires when the queue is deleted: with it goes whatever is said of who waits, and nothing has to be taken back. */
  readonly gone: AbortSignal;
}

/** Waits until it has the key or the signal fires; one that has fired before makes it a try. */
export async function holdKey(parts: HoldParts, request: HoldRequest): Promise<Lease | undefined> {
  const { leases } = parts;
  const key = tokenOf(request.key);
  const over = AbortSignal.any([request.signal, parts.closing, parts.gone]);
  if (over.aborted) return await leases.hold(key, await leases.wish(request), "try");
  const bell = new Bell(parts.clock);
  // Heard from before the first look.
  const watch = parts.watches.add(parts.store.subjects.state(key), bell.ring);
  over.addEventListener("abort", bell.ring);
  const waiting = new WaitingHold(parts, request, key);
  try {
    for (;;) {
      const lease = await waiting.look();
      if (lease !== undefined) return lease;
      if (parts.gone.aborted) return undefined;
      if (over.aborted) return await waiting.leave();
      await bell.next(waiting.isTroubled ? AGAIN_MS : SAFETY_MS);
    }
  } finally {
    over.removeEventListener("abort", bell.ring);
    watch.stop();
    waiting.stop();
  }
}

class WaitingHold {
  readonly #parts: HoldParts;
  readonly #request: HoldRequest;
  readonly #key: string;
  #wish: Wish | undefined;
  #life: { stop(): void } | undefined;
  /** Why the last look failed: the server is away, or its reply was lost. */
  #trouble: Error | undefined;

  constructor(parts: HoldParts, request: HoldRequest, key: string) {
    this.#parts = parts;
    this.#request = request;
    this.#key = key;
  }

  get isTroubled(): boolean {
    return this.#trouble !== undefined;
  }

  async look(): Promise<Lease | undefined> {
    try {
      const wish = await this.#living();
      const lease = await this.#parts.leases.hold(this.#key, wish, "wait");
      this.#trouble = undefined;
      return lease;
    } catch (error) {
      if (!(error instanceof Lost) && !(error instanceof OutcomeUnknown)) throw this.#left(asError(error));
      this.#trouble = error;
      return undefined;
    }
  }

  /** What was handed over in this moment is still returned. While the server is away, nobody can say that somebody else has the key. */
  async leave(): Promise<Lease | undefined> {
    const { closing, leases } = this.#parts;
    try {
      if (this.#wish !== undefined) return await leases.hold(this.#key, this.#wish, "leave");
      if (this.#trouble !== undefined) throw this.#trouble;
    } catch (error) {
      const left = this.#left(asError(error));
      if (!closing.aborted) throw left;
    }
    return undefined;
  }

  stop(): void {
    this.#life?.stop();
  }

  async #living(): Promise<Wish> {
    const wish = await this.#parts.leases.wish(this.#request, this.#wish);
    if (wish !== this.#wish) {
      this.#life?.stop();
      this.#life = this.#parts.leases.keepAlive(wish);
      this.#wish = wish;
    }
    return wish;
  }

  /** Nobody waits any more, and the wish may still be known: this process takes it back, because its session may live on. */
  #left(error: Error): Error {
    const wish = this.#wish;
    if (wish !== undefined) this.#parts.store.background(this.#leaveSurely(wish));
    return error;
  }

  async #leaveSurely(wish: Wish): Promise<void> {
    const { leases, clock, closing, gone } = this.#parts;
    while (!closing.aborted && !gone.aborted) {
      try {
        const lease = await leases.hold(this.#key, wish, "leave");
        if (lease !== undefined) await leases.settle({ lease, ending: { type: "release" } });
        return;
      } catch {
        await pause(clock, AGAIN_MS);
      }
    }
  }
}
