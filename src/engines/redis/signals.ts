/**
 * How processes hear of what others did. Three signals: work is there (or will be, at a time), outcomes are known, leases were lost; and
 * one more for those who wait to hold a key. All are hints. The program publishes them itself, in the step that makes them true; something
 * else can carry them instead, and is then told what the program answered.
 */
import type { Finding } from "../../engine/port.ts";
import type { News } from "./replies.ts";
import type { Wire } from "./client.ts";

export interface SignalListener {
  /** How many claims wait. */
  idle(): number;
  /** So many keys are ready; whoever waits for work should look. */
  work(count: number): void;
  /** Something comes due in so many microseconds. */
  due(inUs: number): void;
  /** What the program told. */
  hear(news: Partial<News>): void;
  /** Something else than the server says that a lease is lost. */
  doubted(key: string, fence: number): void;
  /** Some of this may have been missed. */
  missed(): void;
  /** Whether signals arrive may have changed. */
  hearingChanged(): void;
}

export interface Signals {
  /** The program publishes. */
  readonly published: boolean;
  /** Whether signals arrive, as far as one can know. Otherwise those who wait look by themselves more often. */
  readonly hears: boolean;
  /** Resolves when signals surely arrive, through reconnects too. */
  listen(queue: string, channel: string, listener: SignalListener): Promise<() => void>;
  /** Where the program does not publish them. */
  tell?(queue: string, news: News): void;
  /** What an operator should know of it beside the server. */
  check?(): Promise<readonly Finding[]>;
  close?(): Promise<void>;
}

/** By the publish and subscribe of Redis itself, in the slot of the queue. */
export class RedisSignals implements Signals {
  readonly published = true;
  /** Where nothing is heard nothing can be asked either. */
  readonly hears = true;
  readonly #wire: Wire;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  async listen(_queue: string, channel: string, listener: SignalListener): Promise<() => void> {
    return await this.#wire.listen(
      channel,
      (message) => hear(message, listener),
      () => listener.missed(),
    );
  }
}

/** The first character says what it is about: see the end of `lua/main.ts`. */
function hear(message: string, listener: SignalListener): void {
  const rest = message.slice(1);
  switch (message[0]) {
    case "w":
      return listener.work(Number(rest));
    case "d":
      return listener.due(Number(rest));
    case "h":
      return listener.hear({ freed: rest.split("\0") });
    case "o":
      return listener.hear({ ended: rest.split("\0") });
    case "l":
      return listener.hear({ lost: rest.split("\0") });
    default:
    // Of a newer version: whatever it is, a look by oneself finds it.
  }
}

export function pairs(parts: readonly string[]): readonly { readonly key: string; readonly fence: number }[] {
  return parts.flatMap((key, index) => (index % 2 === 0 ? [{ key, fence: Number(parts[index + 1]) }] : []));
}
