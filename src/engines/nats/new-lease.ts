/** A lease as it is written into its key's record, and from when it counts. */
import { type Clock, elapsedMs, type Instant, instant } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import { asError } from "./as-error.ts";
import type { KeyStore } from "./key-store.ts";
import { type Session, slackOf } from "./sessions.ts";
import type { Seen, StateLease } from "./state.ts";

/** Watchers count from a session's last sign of life, and allow a lease to be a little younger than that; not more. */
export function sinceOf({ since, leaseMs }: Session, clock: Clock): Instant {
  return elapsedMs(clock, since) <= slackOf(leaseMs) ? instant(clock) : since;
}

export function newLease(store: KeyStore, session: Session, worker: string, since: Instant): StateLease {
  return {
    fence: 0,
    session: session.id,
    worker,
    since: since.wall,
    leaseMs: session.leaseMs,
    nonce: store.nonce(),
    progress: undefined,
    cancelRequested: false,
    covered: 1,
    toCancel: [],
  };
}

/** The reply was lost: the record itself tells whose the key is. */
export async function seenIfMine(
  store: KeyStore,
  key: string,
  lease: StateLease,
  error: unknown,
): Promise<Seen | undefined> {
  if (!(error instanceof OutcomeUnknown)) throw asError(error);
  const now = await store.read(key);
  return now.state.lease?.nonce === lease.nonce ? now : undefined;
}
