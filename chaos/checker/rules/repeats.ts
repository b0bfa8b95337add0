import type { Evidence } from "../evidence.ts";
import type { Lease } from "../lease.ts";
import type { Trouble } from "../troubles.ts";
import type { Violation } from "../violation.ts";

/** An item that was given out again although nobody had given it back. */
export interface Repeat {
  readonly before: Lease;
  readonly again: Lease;
  readonly explanation: Trouble | undefined;
}

/**
 * Endings that ask for another run. A worker may work off all that its lease covers before it is written that any of it is done; if it dies
 * then, those items run again. That needs a fault like any other repeat.
 */
const GIVEN_BACK: ReadonlySet<string> = new Set(["retry", "release"]);

/** NATS and PostgreSQL may go on with a key before it is written that the lease before has ended, with at most so many items done (44 on NATS, 12 on PostgreSQL). */
const MOST_LEASES = 44;

export function repeatsOf({ leasesByItem, troubles }: Evidence): readonly Repeat[] {
  return [...leasesByItem.values()].flatMap((ofItem) => {
    const byFence = ofItem.toSorted((a, b) => a.fence - b.fence);
    return byFence.slice(1).flatMap((again, index) => {
      const before = byFence[index];
      // A lost answer may hide that the store was told: then it is no repeat either.
      if (before === undefined || (GIVEN_BACK.has(before.ending ?? "") && before.settled?.outcome !== "fail"))
        return [];
      return [{ before, again, explanation: troubles.during(before.by, before.since, again.grantedAt) }];
    });
  });
}

export function repeats(evidence: Evidence): readonly Violation[] {
  const all = repeatsOf(evidence);
  return [...unexplained(all, evidence), ...tooMany(all, evidence), ...forgotten(evidence)];
}

function unexplained(all: readonly Repeat[], { time }: Evidence): readonly Violation[] {
  return all
    .filter(({ explanation }) => explanation === undefined)
    .map(({ before, again }) => ({
      rule: "repeats" as const,
      key: again.key,
      at: again.grantedAt,
      text:
        `${again.item} of ${again.key} ran twice: ${before.by} was given it at ${time(before.grantedAt)} (fence ${before.fence}), ` +
        `and ${again.by} at ${time(again.grantedAt)} (fence ${again.fence}), and nothing had happened to ${before.by} or to the store.`,
    }));
}

function tooMany(all: readonly Repeat[], { judged, time }: Evidence): readonly Violation[] {
  const finished = new Set<string>();
  for (const { accepted, fence, item, key, step } of judged) {
    if (accepted && step === "finished") finished.add(`${fence} ${key} ${item}`);
  }
  const again = all.filter(({ before }) => finished.has(`${before.fence} ${before.key} ${before.item}`));
  return [...Map.groupBy(again, ({ before }) => `${before.by} ${before.key}`).values()].flatMap((ofCrash) => {
    const [first] = ofCrash;
    // One process may lose a key several times; but not within so short a time.
    const atOnce = ofCrash.filter(({ before }) => before.grantedAt - (first?.before.grantedAt ?? 0) < 1_000);
    const covered = [...new Map(atOnce.map(({ before }) => [before.fence, before.covered])).values()].slice(
      0,
      MOST_LEASES,
    );
    const most = covered.reduce((sum, one) => sum + one, 0);
    if (first === undefined || atOnce.length <= most) return [];
    const text = `After ${first.before.by} had lost ${first.before.key} at ${time(first.before.grantedAt)}, ${atOnce.length} finished items of it ran again; its leases covered ${most}.`;
    return [{ rule: "repeats" as const, key: first.before.key, at: first.again.grantedAt, text }];
  });
}

/** Each run of an item counts: a store that forgets them would try for ever what it promised to give up. */
function forgotten({ leasesByItem, time }: Evidence): readonly Violation[] {
  return [...leasesByItem.values()].flatMap((ofItem) => {
    const byFence = ofItem.toSorted((a, b) => a.fence - b.fence);
    return byFence.slice(1).flatMap((again, index) => {
      const before = byFence[index];
      if (before === undefined || again.attempt >= before.attempt) return [];
      const text =
        `${again.item} of ${again.key} was given to ${again.by} at ${time(again.grantedAt)} as attempt ${again.attempt}, ` +
        `although ${before.by} had been given attempt ${before.attempt} at ${time(before.grantedAt)}.`;
      return [{ rule: "repeats" as const, key: again.key, at: again.grantedAt, text }];
    });
  });
}
