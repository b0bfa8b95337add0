import type { ClaimRequest, Grant } from "../../engine/port.ts";
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
  /** What the claim that is first is answered with, at the end of the turn. */
  readonly giving: Grant[];
  /** Of the last answer. */
  answeredAt: number;
  /** Of the last answer: keys that were fetched for it. The others went on by themselves. */
  fetched: number;
  /** How many keys will probably have to be fetched for it in a moment. */
  ahead: number;
}

/** A key that is being started, or was, for a claim that waits or will come in a moment. */
export interface Coming {
  readonly level: number;
  since: number;
  readonly isFetched: boolean;
  /** Undefined while it is being started. */
  held: Held | undefined;
}

/** Slots that its claims have. */
export function wantedBy({ claims }: Desk): number {
  let wanted = 0;
  for (const { request } of claims) wanted += request.max;
  return wanted;
}
