/**
 * Hears that a stream or a consumer has a new leader. What was asked of one that was killed is never answered: pulls that stood there are
 * forgotten, and so are questions, because the others stay silent until they have missed it for long enough. Whoever waited asks anew.
 * It is a hint: an account that may not listen to it finds the same out by its own patience.
 */
import type { Subscription, Wire } from "./wire.ts";

const ADVISORY = "$JS.EVENT.ADVISORY";

export interface Elected {
  readonly stream: string;
  /** Undefined: the stream itself. */
  readonly consumer: string | undefined;
}

export class Elections {
  readonly #wire: Wire;
  readonly #tell: (elected: Elected) => void;
  readonly #hearing = new Map<string, readonly Subscription[]>();

  constructor(wire: Wire, tell: (elected: Elected) => void) {
    this.#wire = wire;
    this.#tell = tell;
  }

  /** Of a stream with replicas: one that has no other cannot elect anybody. */
  watch(stream: string): void {
    if (this.#hearing.has(stream)) return;
    const consumers = `${ADVISORY}.CONSUMER.LEADER_ELECTED.${stream}`;
    this.#hearing.set(stream, [
      this.#wire.subscribe(`${ADVISORY}.STREAM.LEADER_ELECTED.${stream}`, () =>
        this.#tell({ stream, consumer: undefined }),
      ),
      this.#wire.subscribe(`${consumers}.*`, ({ subject }) =>
        this.#tell({ stream, consumer: subject.slice(consumers.length + 1) }),
      ),
    ]);
  }

  close(): void {
    for (const subscriptions of this.#hearing.values()) for (const one of subscriptions) one.unsubscribe();
  }
}
