/** Who can wait on a queue, and for what. */
import type { ClaimRequest, Grant, HoldRequest, Lease, Outcome, OutcomeRequest } from "../../engine/port.ts";
import { MOST_GRANTS } from "./desk.ts";
import { microseconds } from "./operations.ts";
import { list, number, readGrants, readOutcome } from "./replies.ts";
import { type Kind, NOT_YET } from "./waiting.ts";

/** Claims go along with whatever is sent. What one gets that was given up while it was with the server is not lost. */
export function claims(levels: readonly string[]): Kind<ClaimRequest, readonly Grant[]> {
  return {
    what: "a claim",
    isCompanion: true,
    repeats: true,
    nothing: [],
    // More than a call should carry is taken by the claims after this one.
    write: ({ worker, max, leaseMs, patienceMs, items = 1 }) => {
      const most = String(Math.min(max, MOST_GRANTS));
      return ["claim", worker, most, microseconds(leaseMs), microseconds(patienceMs), String(items)];
    },
    read: (result, { queue }, since) => {
      const grants = readGrants(result, queue, levels, since);
      return grants.length > 0 ? grants : NOT_YET;
    },
  };
}

/**
 * Holds that wait for their key. The key is marked as wanted, so that it is kept for a moment when its lease ends, and whoever waits is told; then
 * it asks again. A mark that nobody answers to costs its key that moment, once.
 */
export const HOLDS: Kind<HoldRequest, Lease | undefined> = {
  what: "a hold",
  nothing: undefined,
  write: ({ key, worker, leaseMs }, waits) => ["hold", key, worker, microseconds(leaseMs), waits ? "1" : "0"],
  read: (result, { queue, key }, since) => {
    const fence = number(result);
    return fence > 0 ? { queue, key, fence, since, handle: undefined } : NOT_YET;
  },
  leave: ({ key }) => ["the end of a wait for a hold", ["unwant", key], () => undefined],
};

/** Those who wait for how an item ends. They are told when it has, and ask then. */
export const OUTCOMES: Kind<OutcomeRequest, Outcome | undefined> = {
  what: "a look at an outcome",
  looks: true,
  repeats: true,
  nothing: undefined,
  write: ({ id }) => ["outcome", id],
  read: (result) => (list(result)[0] === "W" ? NOT_YET : readOutcome(result)),
};
