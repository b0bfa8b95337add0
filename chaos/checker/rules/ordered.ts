import type { Evidence, Submitted } from "../evidence.ts";
import { byKey, type Lease, ranBefore } from "../lease.ts";
import type { Violation } from "../violation.ts";
import { places } from "./places.ts";

/**
 * A worker that goes from item to item may rely on what it last saw of its key for so long (NATS: 50 ms); what is more urgent may
 * come so much too late, and twice that on a busy machine.
 */
const MAY_OVERLOOK_MS = 100;

/** One that ran: when it was asked for and accepted, and its first lease. */
interface Ran extends Submitted {
  readonly first: Lease;
}

export function ordered(evidence: Evidence): readonly Violation[] {
  const { levels } = evidence.rules;
  const firstRuns = byKey(ranOf(evidence)).flatMap((ofKey) => {
    const byLevel = Map.groupBy(ofKey, ({ level }) => level);
    const lines = levels.map((level) => byLevel.get(level) ?? []);
    return lines.flatMap((line, index) =>
      [
        overtaken(line, evidence.time),
        batches(line, evidence.time),
        passedOver(lines.slice(0, index).flat(), line, evidence.time),
      ].flat(),
    );
  });
  return [...firstRuns, ...places(evidence)];
}

/** Those without a lease are another rule's concern. */
function ranOf({ submitted, leasesByItem }: Evidence): readonly Ran[] {
  return [...submitted.values()].flatMap((one) => {
    const leases = leasesByItem.get(one.item) ?? [];
    if (one.isCopy || leases.length === 0) return [];
    return [{ ...one, first: leases.reduce((a, b) => (b.fence < a.fence ? b : a)) }];
  });
}

/** Within a level: what was accepted before another was asked for, runs before it. Fences tell what ran before what. */
function overtaken(line: readonly Ran[], time: Evidence["time"]): readonly Violation[] {
  return compare(
    line,
    line,
    ({ sentAt }) => sentAt,
    (early, late) =>
      `${late.item} ran before ${early.item} (${early.key}, ${early.level}; fences ${late.first.fence} and ${early.first.fence}), ` +
      `although ${early.item} was accepted at ${time(early.acceptedAt ?? 0)}, and ${late.item} was sent at ${time(late.sentAt)}.`,
  );
}

/** Items of one call are in the order given. */
function batches(line: readonly Ran[], time: Evidence["time"]): readonly Violation[] {
  return [...Map.groupBy(line, ({ by, call }) => `${by} ${call}`).values()].flatMap((batch) =>
    batch.slice(1).flatMap((after, index) => {
      const before = batch[index];
      if (before === undefined || ranBefore(before.first, after.first)) return [];
      const text =
        `${after.item} ran before ${before.item} (${before.key}, ${before.level}; fences ${after.first.fence} and ${before.first.fence}), ` +
        `although it stood behind it in the call of ${time(before.sentAt)}.`;
      return [{ rule: "ordered" as const, key: after.key, at: after.first.grantedAt, text }];
    }),
  );
}

/** Across levels: what was chosen although something more urgent had been accepted for the key. */
function passedOver(urgent: readonly Ran[], line: readonly Ran[], time: Evidence["time"]): readonly Violation[] {
  return compare(
    urgent,
    line,
    ({ first }) => first.since - MAY_OVERLOOK_MS,
    (early, late) =>
      `${late.item} (${late.level}) was chosen for ${late.key} after ${time(late.first.since)} (fence ${late.first.fence}), ` +
      `although ${early.item} (${early.level}) had been accepted at ${time(early.acceptedAt ?? 0)} and ran later (fence ${early.first.fence}).`,
  );
}

/** Of those accepted before `begin` of one, the one that ran last: if it ran later than this one, it was overtaken. */
function compare(
  ahead: readonly Ran[],
  behind: readonly Ran[],
  begin: (one: Ran) => number,
  tell: (early: Ran, late: Ran) => string,
): readonly Violation[] {
  const accepted = ahead
    .filter(({ acceptedAt }) => acceptedAt !== undefined)
    .toSorted((a, b) => (a.acceptedAt ?? 0) - (b.acceptedAt ?? 0));
  const found: Violation[] = [];
  let last: Ran | undefined;
  let index = 0;
  for (const late of behind.toSorted((a, b) => begin(a) - begin(b))) {
    for (let next = accepted[index]; (next?.acceptedAt ?? Infinity) < begin(late); next = accepted[index]) {
      if (next !== undefined && (last === undefined || ranBefore(last.first, next.first))) last = next;
      index += 1;
    }
    if (last === undefined || !ranBefore(late.first, last.first)) continue;
    found.push({ rule: "ordered", key: late.key, at: late.first.grantedAt, text: tell(last, late) });
  }
  return found;
}
