/** Who is to be told when something is published on a subject, with one subscription per subject. */
import type { Clock, Timer } from "../../domain/clock.ts";
import type { Subscription, Wire } from "./wire.ts";

/**
 * A server hands a message to listeners before it has stored it, and in a cluster before most replicas have: whoever reads at
 * once may find what was there before. So they are told again after these, one after the other, until what was heard has been read;
 * the last are for a server that has a hard time. Whoever begins to listen is told too, because of what was handed out just before, and not stored yet.
 */
const ECHOES_MS: readonly number[] = [10, 90, 400, 1_500];

interface Watched {
  readonly listeners: Set<() => void>;
  readonly subscription: Subscription;
  /** The last message that was heard, and has not been read yet. */
  heard: Uint8Array | undefined;
  echo: Timer | undefined;
}

export class Watches {
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #watched = new Map<string, Watched>();
  readonly #echoesMs: readonly number[];
  #isListening = false;

  constructor(wire: Wire, clock: Clock, echoesMs: readonly number[] = ECHOES_MS) {
    this.#wire = wire;
    this.#clock = clock;
    this.#echoesMs = echoesMs;
  }

  add(subject: string, listener: () => void): { stop(): void } {
    this.#listen();
    // One that is added twice is two.
    const own = (): void => listener();
    const watched = this.#watched.get(subject) ?? this.#begin(subject);
    watched.listeners.add(own);
    this.#echo(watched, 0);
    return {
      stop: () => {
        if (watched.listeners.delete(own) && watched.listeners.size === 0) this.#end(subject, watched);
      },
    };
  }

  /** This was read. If it is what was heard last, nobody has to look again. */
  hasRead(subject: string, data: Uint8Array): void {
    const watched = this.#watched.get(subject);
    if (watched?.heard === undefined || Buffer.compare(watched.heard, data) !== 0) return;
    watched.heard = undefined;
    watched.echo?.cancel();
    watched.echo = undefined;
  }

  close(): void {
    for (const [subject, watched] of this.#watched) this.#end(subject, watched);
  }

  #begin(subject: string): Watched {
    const watched: Watched = {
      listeners: new Set(),
      subscription: this.#wire.subscribe(subject, ({ data }) => {
        watched.heard = data;
        this.#hear(watched);
      }),
      heard: undefined,
      echo: undefined,
    };
    this.#watched.set(subject, watched);
    return watched;
  }

  #end(subject: string, watched: Watched): void {
    watched.echo?.cancel();
    watched.subscription.unsubscribe();
    watched.listeners.clear();
    if (this.#watched.get(subject) === watched) this.#watched.delete(subject);
  }

  /** Whatever was published while the connection was away was not heard. */
  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#wire.watch((up) => {
      if (up) for (const watched of this.#watched.values()) this.#hear(watched);
    });
  }

  #hear(watched: Watched, echo = 0): void {
    this.#echo(watched, echo);
    for (const listener of watched.listeners) listener();
  }

  #echo(watched: Watched, echo: number): void {
    watched.echo?.cancel();
    const delayMs = this.#echoesMs[echo];
    watched.echo =
      delayMs === undefined ? undefined : this.#clock.setTimer(delayMs, () => this.#hear(watched, echo + 1));
  }
}
