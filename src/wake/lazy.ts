import { type Clock, pause, systemClock } from "../domain/clock.ts";
import { Closed } from "../domain/errors.ts";
import type { HintStore, WakeAdapter } from "./port.ts";

/** Between two tries to reach the carrier. */
const RETRY_MS = 1_000;

/**
 * An adapter whose carrier is reached in the background. A wake is a hint: a process must be able to start while its
 * carrier is away, and goes on trying.
 */
export function lazyWake(name: string, open: () => Promise<WakeAdapter>, clock: Clock = systemClock): WakeAdapter {
  let isClosed = false;
  let opened: WakeAdapter | undefined;
  const closing = Promise.withResolvers<never>();
  closing.promise.catch(() => undefined);
  let opening = begin(0);

  /** Rejects with the reason; a new try begins after a pause, by whoever asks then. */
  function begin(delayMs: number): Promise<WakeAdapter> {
    const trying = (delayMs === 0 ? Promise.resolve() : pause(clock, delayMs)).then(async () => {
      if (isClosed) return await closing.promise;
      const adapter = await open();
      if (isClosed) await adapter.close();
      return (opened = adapter);
    });
    trying.catch(() => {
      if (!isClosed) opening = begin(RETRY_MS);
    });
    return trying;
  }

  function ready(): Promise<WakeAdapter> {
    return Promise.race([opening, closing.promise]);
  }

  /** Until it is open, whoever asks waits for it. */
  const hints: HintStore = {
    async add(budget, count) {
      const { hints: found } = await ready();
      if (found === undefined) throw new Error("There is no place for hints.");
      await found.add(budget, count);
    },
    async take(budget) {
      return (await (await ready()).hints?.take(budget)) ?? "missing";
    },
  };

  return {
    name,
    get hints() {
      return opened === undefined ? hints : opened.hints;
    },
    publish: async (messages) => (await ready()).publish(messages),
    listen: async (channel, heard, missed) => (await ready()).listen(channel, heard, missed),
    async close() {
      isClosed = true;
      closing.reject(new Closed("The connection that carries wakes"));
      await opened?.close();
    },
  };
}
