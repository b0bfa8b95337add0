/** A connection to a carrier that is lost and comes back as a test says, and shows what goes through it. */
import type { HintStore, WakeAdapter, WakeMessage } from "../../../src/wake/port.ts";

interface Subscription {
  readonly channel: string;
  readonly missed: () => void;
  readonly deaf: (() => void) | undefined;
}

export class TroubledAdapter implements WakeAdapter {
  readonly name = "troubled";
  readonly subscriptions: Set<Subscription> = new Set();
  /** How often anything was subscribed to. */
  listens = 0;
  published = 0;
  isDown = false;
  isClosed = false;
  /** What the place for hints does: it answers, refuses, or never answers. */
  hintMood: "well" | "refuses" | "hangs" = "well";
  /** Its answers about hints take a turn of the event loop each. */
  hasSlowHints = false;
  readonly hints: HintStore;
  readonly #inner: WakeAdapter;

  constructor(inner: WakeAdapter) {
    this.#inner = inner;
    const ask = async <T>(work: (hints: HintStore) => Promise<T>): Promise<T> => {
      if (this.isDown || this.hintMood === "refuses") throw new Error("There is no answer about hints.");
      if (this.hintMood === "hangs") return await new Promise<never>(() => undefined);
      if (this.hasSlowHints) await new Promise<void>((resolve) => setImmediate(resolve));
      if (inner.hints === undefined) throw new Error("There is no place for hints.");
      return await work(inner.hints);
    };
    this.hints = {
      add: (name, count) => ask((hints) => hints.add(name, count)),
      take: (name) => ask((hints) => hints.take(name)),
    };
  }

  get channels(): readonly string[] {
    return Array.from(this.subscriptions, ({ channel }) => channel).toSorted();
  }

  async publish(messages: readonly WakeMessage[]): Promise<void> {
    if (this.isDown || this.isClosed) throw new Error("The carrier is down.");
    this.published += messages.length;
    await this.#inner.publish(messages);
  }

  async listen(
    channel: string,
    heard: (text: string) => void,
    missed: () => void,
    deaf?: () => void,
  ): Promise<() => Promise<void>> {
    if (this.isDown || this.isClosed) throw new Error("The carrier is down.");
    this.listens += 1;
    const stop = await this.#inner.listen(
      channel,
      (text) => {
        if (!this.isDown) heard(text);
      },
      missed,
    );
    const subscription = { channel, missed, deaf };
    this.subscriptions.add(subscription);
    return async () => {
      this.subscriptions.delete(subscription);
      await stop();
    };
  }

  lose(): void {
    if (this.isDown) return;
    this.isDown = true;
    for (const { deaf } of this.subscriptions) deaf?.();
  }

  find(): void {
    if (!this.isDown) return;
    this.isDown = false;
    for (const { missed } of this.subscriptions) missed();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    this.subscriptions.clear();
    await this.#inner.close();
  }
}
