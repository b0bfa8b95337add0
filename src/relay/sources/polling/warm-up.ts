import { setTimeout as sleep } from "node:timers/promises";

/** A start is not held up for longer by a queue that does not answer. */
const PATIENCE_MS = 5_000;

/**
 * Finding a queue for the first time takes a second or more: credentials, a connection, its address. Until then an
 * urgent source would look slow, and less urgent ones would be asked. So it is found when the source is opened; what
 * goes wrong is said by the first receive.
 */
export async function warmUp(find: () => Promise<unknown>): Promise<void> {
  const patience = new AbortController();
  const found = find().then(
    () => undefined,
    () => undefined,
  );
  await Promise.race([found, sleep(PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => undefined)]);
  patience.abort();
}
