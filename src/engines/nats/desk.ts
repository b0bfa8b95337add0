import type { ClaimRequest, Grant } from "../../engine/port.ts";
import type { Ahead } from "./ahead.ts";
import type { Held } from "./own-leases.ts";

/** A call that waits for keys. */
export interface WaitingClaim {
  readonly request: ClaimRequest;
  readonly answer: (grants: readonly Grant[]) => void;
}

/** Where the claims of one worker wait, and what is on its way to them. */
export interface Desk {
  readonly worker: string;
  readonly leaseMs: number;
  readonly claims: WaitingClaim[];
  /** In the order in which they came, and are given out. */
  line: Coming[];
  /** The same, for claims that are to come. */
  early: Coming[];
  readonly ahead: Ahead;
  /** What the claim that is first is answered with, at the end of the turn. */
  readonly giving: Grant[];
  /** Of the last answer. */
  answeredAt: number;
  /** Of the last answer: keys that were fetched for it. The others went on by themselves. */
  fetched: number;
}

/** A key that is being started, or was, for a claim that waits or will come in a moment. */
export interface Coming {
  readonly level: number;
  since: number;
  readonly isFetched: boolean;
  /** Its level has waited too long: it is given out before anything else. */
  readonly isFirst: boolean;
  /** Undefined while it is being started. */
  held: Held | undefined;
  /** It goes back as soon as it is started. */
  isUnwanted: boolean;
}

/** Keys that are on their way to it. */
export function comingTo({ line, early, giving }: Desk): number {
  return line.length + early.length + giving.length;
}

/** Slots that its claims have. */
export function wantedBy({ claims }: Desk): number {
  let wanted = 0;
  for (const { request } of claims) wanted += request.max;
  return wanted;
}
