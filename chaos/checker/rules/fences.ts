import type { Evidence } from "../evidence.ts";
import { byKey, isLive, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

export function fences({ leases, time }: Evidence): readonly Violation[] {
  // The items of a run share a fence.
  return byKey(leases.filter(({ place }) => place === 0)).flatMap((ofKey) =>
    [
      givenTwice(ofKey, time),
      // A worker may hear late of a lease that was over by then; the others were given in the order in which they were heard of.
      fallen(ofKey.filter(isLive), (lease) => lease.grantedAt, time),
      // This one is certain for all: one was heard of before the other was asked for.
      fallen(ofKey, (lease) => lease.since, time),
    ].flat(),
  );
}

function givenTwice(ofKey: readonly Lease[], time: Evidence["time"]): readonly Violation[] {
  return [...Map.groupBy(ofKey, ({ fence }) => fence)].flatMap(([fence, same]) => {
    const [first, second] = same;
    if (first === undefined || second === undefined) return [];
    const text =
      `Fence ${fence} of ${second.key} was given twice: to ${first.by} at ${time(first.grantedAt)} for ${first.item}, ` +
      `and to ${second.by} at ${time(second.grantedAt)} for ${second.item}.`;
    return [{ rule: "fences" as const, key: second.key, at: second.grantedAt, text }];
  });
}

/** Of each lease, those that were heard of before `begin` have lower fences. */
function fallen(
  ofKey: readonly Lease[],
  begin: (lease: Lease) => number,
  time: Evidence["time"],
): readonly Violation[] {
  const heard = ofKey.toSorted((a, b) => a.grantedAt - b.grantedAt);
  const found: Violation[] = [];
  let highest: Lease | undefined;
  let index = 0;
  for (const lease of ofKey.toSorted((a, b) => begin(a) - begin(b))) {
    for (let next = heard[index]; next !== undefined && next.grantedAt < begin(lease); next = heard[index]) {
      if (highest === undefined || next.fence > highest.fence) highest = next;
      index += 1;
    }
    if (highest === undefined || highest.fence <= lease.fence) continue;
    const text =
      `${lease.by} was given ${lease.key} at ${time(lease.grantedAt)} with fence ${lease.fence}, ` +
      `which is lower than fence ${highest.fence} that ${highest.by} had been given at ${time(highest.grantedAt)}.`;
    found.push({ rule: "fences", key: lease.key, at: lease.grantedAt, text });
  }
  return found;
}
