import type { Evidence } from "../evidence.ts";
import { byKey, endOf, isLive, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

/**
 * From the moment a worker heard of its lease until it let go of it, or its local deadline passed, nobody else may have the key. That a
 * process was killed meanwhile does not end its lease: whoever takes over has to wait for it.
 */
export function exclusive({ leases, time }: Evidence): readonly Violation[] {
  return byKey(leases.filter(isLive)).flatMap((ofKey) => {
    const found: Violation[] = [];
    let longest: Lease | undefined;
    for (const lease of ofKey.toSorted((a, b) => a.grantedAt - b.grantedAt)) {
      if (longest !== undefined && lease.grantedAt < endOf(longest)) {
        const text =
          `${lease.by} was given ${lease.key} (fence ${lease.fence}, item ${lease.item}) at ${time(lease.grantedAt)}, ` +
          `while ${longest.by} had it (fence ${longest.fence}, item ${longest.item}) from ${time(longest.grantedAt)} until ${time(endOf(longest))}.`;
        found.push({ rule: "exclusive", key: lease.key, at: lease.grantedAt, text });
      }
      if (longest === undefined || endOf(lease) > endOf(longest)) longest = lease;
    }
    return found;
  });
}
