import { setTimeout as wait } from "node:timers/promises";

const LOOK_MS = 10;
/** Nothing takes so long that comes at all, also on a machine with much else to do. */
const PATIENCE_MS = 45_000;

/**
 * Waits for what nobody tells of, and resolves with it: looks until the look finds something. A test that waits in vain says
 * for what. What can be told of is awaited instead: an event, a message, a promise.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string,
  patienceMs: number = PATIENCE_MS,
): Promise<Exclude<T, false | undefined>> {
  const giveUpAt = performance.now() + patienceMs;
  for (;;) {
    const found = await look();
    if (isFound(found)) return found;
    if (performance.now() > giveUpAt) throw new Error(`Waited ${patienceMs} ms in vain for ${what}.`);
    await wait(LOOK_MS);
  }
}

function isFound<T>(found: T): found is Exclude<T, false | undefined> {
  return found !== undefined && found !== false;
}
