import type { Hold } from "./hold.ts";
import type { KeptSession } from "./kept-session.ts";
import type { LockSettings } from "./options.ts";

/** A hold and the session that keeps it. */
export interface Taken {
  readonly session: KeptSession;
  readonly held: Hold;
}

/** Acquires locks under whichever session is right for the lease. */
export interface Taker {
  take(name: string, leaseMs: number, settings: LockSettings): Promise<Taken>;
  /** Whether a session is one of this connection's. */
  owns(sessionId: string): boolean;
}
