import { Backoff } from "../domain/backoff.ts";
import { Closed } from "../domain/errors.ts";
import type { Engine, Settlement, SettleResult } from "../engine/port.ts";
import type { Outages } from "./outages.ts";
import type { HeldItem } from "./held-item.ts";

export interface Settled {
  readonly held: HeldItem;
  readonly settlement: Settlement;
}

/** Between two tries to settle while the store does not answer. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** The last try is made so long before the leases end: a settlement that comes later is refused. */
const LAST_TRY_MS = 100;
const DOING = "settling items";

/** The lease lasts for another try. */
export function isCertain(held: HeldItem): boolean {
  return held.leftMs > LAST_TRY_MS;
}

/**
 * Settles, and tries again while the store is out of reach, for as long as the leases are certain. Repeating is
 * safe: a settlement that did happen is refused the second time and changes nothing.
 */
export async function settleUntilCertain(
  parts: { readonly engine: Engine; readonly outages: Outages; readonly random: () => number },
  settled: readonly Settled[],
): Promise<readonly (SettleResult | "unknown")[]> {
  const backoff = new Backoff(parts.random, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  for (let hasFailed = false; ; hasFailed = true) {
    try {
      const settling = parts.engine.settle(settled.map((one) => one.settlement));
      const results = await parts.outages.answered(DOING, settling);
      parts.outages.worked(DOING);
      // What was settled by a call without an answer is refused the second time.
      return hasFailed ? results.map((result) => (result === "lost" ? "unknown" : result)) : results;
    } catch (error) {
      if (error instanceof Closed) return settled.map(() => "unknown");
      parts.outages.failed(DOING, error);
      const leftMs = Math.max(...settled.map(({ held }) => held.leftMs)) - LAST_TRY_MS;
      if (leftMs <= 0) return settled.map(() => "unknown");
      await parts.outages.pause(Math.min(backoff.next(), leftMs));
    }
  }
}
