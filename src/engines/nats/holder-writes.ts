/** Writes of the one who has the key, and what it does when somebody else has written meanwhile. */
import { OutcomeUnknown } from "../../domain/errors.ts";
import { asError } from "./as-error.ts";
import type { KeyStore } from "./key-store.ts";
import type { Held } from "./own-leases.ts";
import type { KeyState, Seen } from "./state.ts";

/** Undefined: the key does not stand as it was last seen. */
export function writeHeld(
  store: KeyStore,
  held: Held,
  next: KeyState,
  isGood?: () => boolean,
): Promise<Seen | undefined> {
  return store
    .write(held.key, held.seen, next, isGood)
    .catch((error: unknown) => perhapsWritten(store, held, next, error));
}

/** The reply was lost. Undefined: it was not written. */
async function perhapsWritten(store: KeyStore, held: Held, next: KeyState, error: unknown): Promise<Seen | undefined> {
  if (!(error instanceof OutcomeUnknown)) throw asError(error);
  const now = await store.read(held.key);
  if (held.isMine(now.state.lease)) return undefined;
  // Somebody else's item came on top of it; the lease is this very one.
  if (next.lease !== undefined && now.state.lease?.nonce === next.lease.nonce) {
    await store.perform(held.key, now.state);
    return { sequence: now.sequence, state: { ...now.state, todo: [] } };
  }
  throw error;
}

/** True: the key is still this lease's, and stands so or as somebody else has changed it. */
export async function rewriteHeld(store: KeyStore, held: Held, next: KeyState): Promise<boolean> {
  const written = await writeHeld(store, held, next);
  if (written === undefined) return await lookAgain(store, held);
  held.seen = written;
  return true;
}

/** Somebody else changed the record. True: it is still this lease's. */
export async function lookAgain(store: KeyStore, held: Held): Promise<boolean> {
  const seen = await store.read(held.key);
  if (!held.isMine(seen.state.lease)) return false;
  await takeIn(store, held, seen);
  return true;
}

/**
 * The key is this lease's, and stands as somebody else has written it.
 *
 * @param matters not so any more once its end is on its way: that was thought out for how the key stood before
 */
export async function takeIn(store: KeyStore, held: Held, seen: Seen, matters: () => boolean = always): Promise<void> {
  // Whoever wrote this may have died before it was done.
  await store.perform(held.key, seen.state);
  if (!matters()) return;
  // What lay below is gone already, or will be asked for again.
  held.seen = { sequence: seen.sequence, state: { ...seen.state, below: [], todo: [] } };
}

function always(): boolean {
  return true;
}
