import { type Clock, elapsedMs, type Instant } from "../../../src/domain/clock.ts";
import type { Locks, Session } from "../../../src/locks/port.ts";

export interface OpenSession {
  readonly session: Session;
  readonly locks: Locks;
}

/** This process stood still for a whole lease: a session ran out that was to live on, and no store is to blame. */
export class Stalled extends Error {}

/** Signs of life in a lease. */
const SIGNS = 5;

/**
 * Gives signs of life until something is prepared, however long that takes: stores may tell of one more in line a second later. Returns when
 * the last one was given.
 */
export async function keptAlive(
  clock: Clock,
  { session, locks }: OpenSession,
  prepare: () => Promise<void>,
): Promise<Instant> {
  let since = session.since;
  let isOver = false;
  let signing: Promise<void> = Promise.resolve();
  const isStalled = (): boolean => elapsedMs(clock, since) >= session.leaseMs;
  const sign = async (): Promise<void> => {
    const signed = await locks.renewSession(session);
    if (signed === undefined) throw new Error("the session that is to vanish is over already");
    if (signed.monotonic > since.monotonic) since = signed;
  };
  const beat = (): void => {
    if (isOver) return;
    signing = sign().catch(() => undefined);
    timer = clock.setTimer(session.leaseMs / SIGNS, beat);
  };
  let timer = clock.setTimer(session.leaseMs / SIGNS, beat);
  try {
    await prepare();
    await sign();
  } catch (error) {
    if (isStalled()) throw new Stalled("the session ran out before it was to", { cause: error });
    throw error;
  } finally {
    isOver = true;
    timer.cancel();
    await signing;
  }
  if (isStalled()) throw new Stalled("the session ran out before it was to");
  return since;
}
