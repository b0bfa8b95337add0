import type { Evidence } from "../evidence.ts";
import { ENDS, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

export function completed(evidence: Evidence): readonly Violation[] {
  return [...afterItsEnd(evidence), ...afterItWasTakenBack(evidence)];
}

/** Whoever is told that an item is taken back, or has ended, does not see it run after that. */
function afterItWasTakenBack({ cancels, leasesByItem, time }: Evidence): readonly Violation[] {
  return [...cancels].flatMap(([item, answers]) => {
    const over = answers.find(({ result }) => result === "cancelled" || result === "ended");
    // Of what a lease covers, and is not begun, nobody is told that it is taken back.
    const again = (leasesByItem.get(item) ?? []).find(
      ({ place, since, grantedAt }) => over !== undefined && (place === 0 ? since : grantedAt) > over.at,
    );
    if (over === undefined || again === undefined) return [];
    const text =
      `${item} of ${again.key} was given to ${again.by} (fence ${again.fence}) at ${time(again.grantedAt)}, ` +
      `although ${over.by} had been told at ${time(over.at)} that it ${over.result === "ended" ? "had ended" : "was taken back"}.`;
    return [{ rule: "completed" as const, key: again.key, at: again.grantedAt, text }];
  });
}

function afterItsEnd({ leasesByItem, time }: Evidence): readonly Violation[] {
  return [...leasesByItem.values()].flatMap((ofItem) => {
    const byFence = ofItem.toSorted((a, b) => a.fence - b.fence);
    const found: Violation[] = [];
    let end: Lease | undefined;
    for (const lease of byFence) {
      if (end !== undefined) {
        const text =
          `${lease.item} of ${lease.key} was given to ${lease.by} (fence ${lease.fence}) at ${time(lease.grantedAt)}, ` +
          `although it had ended as ${end.ending ?? "done"}: ${end.by} (fence ${end.fence}) was told so at ${time(end.settled?.at ?? 0)}.`;
        found.push({ rule: "completed", key: lease.key, at: lease.grantedAt, text });
      }
      if (isEnd(lease) && end === undefined) end = lease;
    }
    const ends = ofItem.filter(isEnd);
    const [first, second] = ends.toSorted((a, b) => (a.settled?.at ?? 0) - (b.settled?.at ?? 0));
    if (first !== undefined && second !== undefined) {
      const text =
        `${first.item} of ${first.key} was completed ${ends.length} times: ${first.by} (fence ${first.fence}) was told so at ` +
        `${time(first.settled?.at ?? 0)}, and ${second.by} (fence ${second.fence}) at ${time(second.settled?.at ?? 0)}.`;
      found.push({ rule: "completed", key: first.key, at: second.settled?.at ?? 0, text });
    }
    return found;
  });
}

function isEnd({ ending, settled }: Lease): boolean {
  return settled?.outcome === "ok" && ending !== undefined && ENDS.has(ending);
}
