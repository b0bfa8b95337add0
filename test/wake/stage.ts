import { MemoryWakes } from "../../src/wake/memory.ts";
import type { HintStore, WakeAdapter, WakeMessage } from "../../src/wake/port.ts";
import type { Sleepers } from "../../src/wake/slots.ts";
import { Wake } from "../../src/wake/wake.ts";
import { ManualClock } from "../manual-clock.ts";

/** Claims that sleep. Those that are woken are up and about. */
export class Bed implements Sleepers {
  woken = 0;
  asleep: number;

  constructor(asleep: number) {
    this.asleep = asleep;
  }

  idle(): number {
    return this.asleep;
  }

  wake(count: number): void {
    this.woken += count;
    this.asleep -= count;
  }

  stir(): void {
    this.wake(this.asleep);
  }
}

/** An adapter that shows what passes through it and can be troubled. */
export class WatchedAdapter implements WakeAdapter {
  readonly name = "watched";
  readonly sent: WakeMessage[] = [];
  /** Channels that are subscribed to now, and how often any was. */
  readonly listening: string[] = [];
  subscriptions = 0;
  isDown = false;
  hints: HintStore | undefined;
  missed: () => void = () => undefined;
  readonly #inner: WakeAdapter;

  constructor(inner: WakeAdapter) {
    this.#inner = inner;
    this.hints = inner.hints;
  }

  async publish(messages: readonly WakeMessage[]): Promise<void> {
    if (this.isDown) throw new Error("The carrier is down.");
    this.sent.push(...messages);
    await this.#inner.publish(messages);
  }

  async listen(channel: string, heard: (text: string) => void, missed: () => void): Promise<() => Promise<void>> {
    if (this.isDown) throw new Error("The carrier is down.");
    this.subscriptions += 1;
    this.listening.push(channel);
    this.missed = missed;
    const stop = await this.#inner.listen(channel, heard, missed);
    return async () => {
      this.listening.splice(this.listening.indexOf(channel), 1);
      await stop();
    };
  }

  async close(): Promise<void> {
    await this.#inner.close();
  }
}

/** So many processes that share a carrier, on a clock that stands still. */
export function wakeStage(processes: number): {
  readonly clock: ManualClock;
  readonly adapters: readonly WatchedAdapter[];
  readonly wakes: readonly Wake[];
} {
  const clock = new ManualClock();
  const carrier = new MemoryWakes({ clock });
  const adapters = Array.from({ length: processes }, () => new WatchedAdapter(carrier.connect()));
  return { clock, adapters, wakes: adapters.map((adapter) => new Wake(adapter, { clock })) };
}
