import type { Evidence } from "../evidence.ts";
import { byKey, type Lease } from "../lease.ts";
import type { Trouble } from "../troubles.ts";
import type { Violation } from "../violation.ts";

/** A key whose worker was lost, and who had it next. */
export interface Takeover {
  readonly fault: Trouble;
  readonly lost: Lease;
  readonly next: Lease;
  readonly tookMs: number;
  /** Something else went on at the same time: it does not count. */
  readonly isDisturbed: boolean;
}

/** After these the process can do nothing for its leases. */
const LOSSES: ReadonlySet<string> = new Set(["kill", "stop", "block"]);
const LATER_MS = 1_000;
/** With fewer, one slow takeover would be the ninety-ninth of a hundred: then the middle one is judged. */
const ENOUGH = 20;
const ENOUGH_FOR_A_MIDDLE = 5;

export function takeoversOf({ leases, submitted, troubles }: Evidence): readonly Takeover[] {
  const losses = troubles.faults.filter(({ kind }) => LOSSES.has(kind));
  return byKey(leases).flatMap((ofKey) => {
    const byFence = ofKey.toSorted((a, b) => a.fence - b.fence);
    return byFence.flatMap((lost, index) => {
      const next = byFence[index + 1];
      if (next === undefined || lost.releasedAt !== undefined) return [];
      const fault = losses.find(
        ({ from, hits }) => hits?.has(lost.by) === true && from >= lost.grantedAt && from <= lost.until,
      );
      if (fault === undefined) return [];
      // What was lost had been taken back, and nothing else waited then.
      if (next.item !== lost.item && (submitted.get(next.item)?.acceptedAt ?? 0) > fault.from) return [];
      const tookMs = next.grantedAt - fault.from;
      const isDisturbed =
        troubles.ofEverybody(fault.from, next.grantedAt) !== undefined ||
        troubles.ofProcess(next.by, fault.from, next.grantedAt) !== undefined;
      return [{ fault, lost, next, tookMs, isDisturbed }];
    });
  });
}

/** Too few to say anything about ninety-nine of a hundred. */
export function areTakeoversFew(evidence: Evidence): boolean {
  return takeoversOf(evidence).filter(({ isDisturbed }) => !isDisturbed).length < ENOUGH;
}

export function takeover(evidence: Evidence): readonly Violation[] {
  const { rules, time } = evidence;
  const counted = takeoversOf(evidence)
    .filter(({ isDisturbed }) => !isDisturbed)
    .toSorted((a, b) => a.tookMs - b.tookMs);
  const isEnough = counted.length >= ENOUGH;
  const judged = counted[Math.ceil(counted.length * (isEnough ? 0.99 : 0.5)) - 1];
  if (counted.length < ENOUGH_FOR_A_MIDDLE || judged === undefined || judged.tookMs <= rules.leaseMs + LATER_MS)
    return [];
  const { fault, lost, next, tookMs } = judged;
  const text =
    `${fault.story} at ${time(fault.from)} with ${lost.key} (fence ${lost.fence}); ${next.by} was given it at ${time(next.grantedAt)}, ` +
    `${(tookMs / 1_000).toFixed(2)} s later. That is ${isEnough ? "the 99th of 100" : "the middle one"} of ${counted.length} takeovers; ` +
    `promised are ${(rules.leaseMs + LATER_MS) / 1_000} s.`;
  return [{ rule: "takeover", key: lost.key, at: next.grantedAt, text }];
}
