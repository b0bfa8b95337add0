import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../domain/clock.ts";
import type { Source, SourceMessage } from "../../relay/source.ts";
import { present } from "../expect.ts";
import { quietAfter } from "../quiet.ts";
import type { SuiteScene } from "../suite.ts";
import type { SentMessage, SourceQueue, SourceTarget } from "./target.ts";

const DEFAULT_HOLD_MS = 1_000;
/** A hold that no case lives long enough to lose. */
const LONG_HOLD_MS = 60_000;
/** Between two tries of a queue that may not see everything at each. */
const AGAIN_MS = 50;
const FIRED = AbortSignal.abort();

/** Where one case plays: a queue of its own, and handles on it. */
export class SourceScene implements SuiteScene {
  readonly #target: SourceTarget;
  readonly #over: AbortSignal;
  readonly #queues: SourceQueue[] = [];
  readonly #handles: Source[] = [];

  constructor(target: SourceTarget, over: AbortSignal) {
    this.#target = target;
    this.#over = over;
  }

  begin(): Promise<void> {
    return Promise.resolve();
  }

  async end(): Promise<void> {
    await Promise.allSettled(this.#handles.map((handle) => handle.close()));
    await Promise.allSettled(this.#queues.map((queue) => queue.dispose()));
  }

  /** How long a message stays with whoever does not extend it, in a queue of `mortal`. */
  get holdMs(): number {
    return this.#target.shortestHoldMs ?? DEFAULT_HOLD_MS;
  }

  /** A queue whose messages stay with whoever received them for as long as a case lasts. */
  async queue(): Promise<Stage> {
    return await this.#create(LONG_HOLD_MS);
  }

  /** A queue whose messages come again soon if nobody extends them. */
  async mortal(): Promise<Stage> {
    return await this.#create(this.holdMs);
  }

  async #create(holdMs: number): Promise<Stage> {
    const queue = await this.#target.create(holdMs);
    this.#queues.push(queue);
    return new Stage(queue, this.#handles, this.#over);
  }
}

/** One queue, as those who send to it and those who receive from it see it. */
export class Stage {
  readonly #queue: SourceQueue;
  readonly #handles: Source[];
  readonly #over: AbortSignal;

  constructor(queue: SourceQueue, handles: Source[], over: AbortSignal) {
    this.#queue = queue;
    this.#handles = handles;
    this.#over = over;
  }

  async open(): Promise<Source> {
    const source = await this.#queue.open();
    this.#handles.push(source);
    return quietAfter(source, this.#over);
  }

  async send(...messages: readonly (string | SentMessage)[]): Promise<void> {
    for (const message of messages) await this.#queue.send(typeof message === "string" ? { data: message } : message);
  }

  async buried(): Promise<readonly string[]> {
    return await this.#queue.buried();
  }

  /** Waits for the next message. */
  async receive(source: Source): Promise<SourceMessage> {
    const [message] = await source.receive({ max: 1, signal: this.#over });
    return present(message, "A receive that waits resolves with a message");
  }

  /** What a try brings: perhaps nothing, perhaps less than there is. */
  async try(source: Source, max = 1): Promise<readonly SourceMessage[]> {
    // A case that has failed in one place must not go on trying in another.
    this.#over.throwIfAborted();
    return await source.receive({ max, signal: FIRED });
  }

  /** Tries again and again for a while, as a relay does, and gives what came. */
  async tryFor(source: Source, ms: number): Promise<readonly SourceMessage[]> {
    const until = systemClock.monotonic() + ms;
    while (systemClock.monotonic() < until) {
      const found = await this.try(source);
      if (found.length > 0) return found;
      await wait(AGAIN_MS);
    }
    return [];
  }

  /** Extends in time, until it is told to stop. */
  keep(message: SourceMessage): Disposable {
    if (message.holdMs === 0) return { [Symbol.dispose]: () => undefined };
    const timer = setInterval(() => void message.extend().catch(() => undefined), message.holdMs / 3);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }
}

export function textOf({ data }: SourceMessage): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}
