import type { Finding } from "../../engine/port.ts";
import type { Wake } from "../../wake/wake.ts";
import type { News } from "./replies.ts";
import { pairs, type SignalListener, type Signals } from "./signals.ts";

/** Something else than Redis carries the signals: the program publishes nothing, and what it answers is told by this process. */
export class WakeSignals implements Signals {
  readonly published = false;
  readonly #wake: Wake;

  readonly #listeners = new Set<SignalListener>();

  constructor(wake: Wake) {
    this.#wake = wake;
    wake.onHearing(() => {
      for (const listener of this.#listeners) listener.hearingChanged();
    });
  }

  get hears(): boolean {
    return this.#wake.hears;
  }

  async listen(queue: string, _channel: string, listener: SignalListener): Promise<() => void> {
    this.#listeners.add(listener);
    const stops = [
      this.#wake.onWork(queue, {
        idle: () => listener.idle(),
        wake: (count) => listener.work(count),
        stir: () => listener.missed(),
      }),
      this.#wake.onEnded(queue, (ids) => (ids === undefined ? listener.missed() : listener.hear({ ended: ids }))),
      this.#wake.onLost((lost) => {
        if (lost.queue === queue) listener.doubted(lost.key, lost.fence);
      }),
    ];
    return () => {
      this.#listeners.delete(listener);
      for (const stop of stops) stop();
    };
  }

  tell(queue: string, { left, isSooner, freed, ended, lost }: News): void {
    // That something comes due sooner than anybody expected is for one who waits to know.
    if (left > 0 || isSooner) this.#wake.work(queue, Math.max(left, 1));
    if (freed.length > 0) this.#wake.stir(queue);
    this.#wake.ended(queue, ended);
    for (const { key, fence } of pairs(lost)) this.#wake.lost({ queue, key, fence });
  }

  async check(): Promise<readonly Finding[]> {
    return [await this.#wake.check()];
  }

  async close(): Promise<void> {
    await this.#wake.close();
  }
}
