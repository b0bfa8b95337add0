import { isError } from "../domain/realms.ts";
import { type Clock, systemClock, type Timer } from "../domain/clock.ts";
import { Closed } from "../domain/errors.ts";
import type { HintStore, WakeAdapter, WakeMessage } from "./port.ts";

/** Between two tries to reach the carrier. */
const RETRY_MS = 1_000;

/**
 * An adapter whose carrier is reached in the background. A wake is a hint: a process must be able to start while its
 * carrier is away, and goes on trying.
 *
 * @param open rejects soon after its signal fires, and leaves nothing behind that keeps the process alive
 */
export function lazyWake(
  name: string,
  open: (signal: AbortSignal) => Promise<WakeAdapter>,
  clock: Clock = systemClock,
): WakeAdapter {
  return new LazyWake(name, open, clock);
}

class LazyWake implements WakeAdapter {
  readonly name: string;
  readonly #open: (signal: AbortSignal) => Promise<WakeAdapter>;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  readonly #closed: PromiseWithResolvers<never> = Promise.withResolvers();
  #opened: WakeAdapter | undefined;
  #opening: Promise<WakeAdapter>;
  /** Why the last try failed. Until there is one, everybody waits for the first try. */
  #failure: Error | undefined;
  #timer: Timer | undefined;

  constructor(name: string, open: (signal: AbortSignal) => Promise<WakeAdapter>, clock: Clock) {
    this.name = name;
    this.#open = open;
    this.#clock = clock;
    this.#closed.promise.catch(() => undefined);
    this.#opening = this.#try();
  }

  get hints(): HintStore | undefined {
    return this.#opened === undefined ? this.#hints : this.#opened.hints;
  }

  async publish(messages: readonly WakeMessage[]): Promise<void> {
    await (await this.#now()).publish(messages);
  }

  /** Waits for the try that is under way, or for the next one: what comes later is listened to all the same. */
  async listen(...given: Parameters<WakeAdapter["listen"]>): Promise<() => Promise<void>> {
    return await (await this.#ready()).listen(...given);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#timer?.cancel();
    this.#closed.reject(new Closed("The connection that carries wakes"));
    await this.#opened?.close();
  }

  readonly #hints: HintStore = {
    add: async (budget, count) => {
      const { hints } = await this.#now();
      if (hints === undefined) throw new Error("There is no place for hints.");
      await hints.add(budget, count);
    },
    take: async (budget) => (await (await this.#now()).hints?.take(budget)) ?? "missing",
  };

  /** What would come too late anyway is refused at once while the carrier is known to be away. */
  async #now(): Promise<WakeAdapter> {
    if (this.#opened === undefined && this.#failure !== undefined) throw this.#failure;
    return await this.#ready();
  }

  #ready(): Promise<WakeAdapter> {
    return Promise.race([this.#opening, this.#closed.promise]);
  }

  /** Rejects with the reason; the next try begins after a pause. */
  #try(): Promise<WakeAdapter> {
    const trying = this.#openOnce();
    trying.catch((error: unknown) => {
      if (this.#closing.signal.aborted) return;
      this.#failure = isError(error) ? error : new Error(String(error));
      this.#opening = this.#tryLater();
    });
    return trying;
  }

  async #openOnce(): Promise<WakeAdapter> {
    const adapter = await this.#open(this.#closing.signal);
    if (this.#closing.signal.aborted) {
      await adapter.close();
      return await this.#closed.promise;
    }
    this.#opened = adapter;
    return adapter;
  }

  #tryLater(): Promise<WakeAdapter> {
    const later = new Promise<WakeAdapter>((resolve) => {
      this.#timer = this.#clock.setTimer(RETRY_MS, () => resolve(this.#try()));
    });
    later.catch(() => undefined);
    return later;
  }
}
