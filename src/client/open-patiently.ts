import { Backoff } from "../domain/backoff.ts";
import { stayingAlive, systemClock } from "../domain/clock.ts";
import { isAway } from "../domain/errors.ts";
import type { Engine } from "../engine/port.ts";
import { Outages } from "../worker/outages.ts";
import { type BatonOptions, tellerOf } from "./baton.ts";

/** Between tries; doubles up to the longest, which is how late a program may be when its store is there. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;
const CONNECTING = "connecting";

/** Opens a store that may not be there yet: tries again for so long. What does not get better by waiting is thrown at once. */
export async function openPatiently(
  open: () => Promise<Engine>,
  patienceMs: number,
  options: BatonOptions,
): Promise<{ readonly engine: Engine; readonly outages: Outages }> {
  const clock = options.clock ?? systemClock;
  const backoff = new Backoff(options.random ?? Math.random, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  const outages = new Outages(clock, tellerOf(options));
  const giveUpAt = clock.monotonic() + patienceMs;
  for (;;) {
    try {
      const engine = await open();
      outages.worked(CONNECTING);
      return { engine, outages };
    } catch (error) {
      const leftMs = giveUpAt - clock.monotonic();
      if (!isAway(error) || leftMs <= 0) {
        outages.close();
        throw error;
      }
      outages.failed(CONNECTING, error);
      await stayingAlive(outages.pause(Math.min(backoff.next(), leftMs)));
    }
  }
}
