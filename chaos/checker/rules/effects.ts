import type { Evidence } from "../evidence.ts";
import { deadlineAt, type Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

/** From the deadline to the moment at which a timer runs on a busy machine, and to what was on its way by then. */
const TIMER_MS = 150;

export function effects(evidence: Evidence): readonly Violation[] {
  return [...late(evidence), ...lowerFences(evidence), ...ofLeases(evidence)];
}

/** After its local deadline a worker begins nothing, unless it stood still; and once it runs again it notices at once. */
function late({ leases, rules, troubles, time }: Evidence): readonly Violation[] {
  return leases.flatMap((lease) =>
    lease.effects.flatMap((effect) => {
      const deadline = deadlineAt(lease, effect.at, rules);
      if (effect.at <= deadline + TIMER_MS) return [];
      const pausedUntil = troubles.pausedUntil(lease.by, effect.at);
      if (pausedUntil >= Math.max(deadline, effect.at - TIMER_MS)) return [];
      const text =
        `${lease.by} still worked on ${lease.item} of ${lease.key} (fence ${lease.fence}, "${effect.step}") at ${time(effect.at)}, ` +
        `after its local deadline at ${time(deadline)}, without having stood still.`;
      return [{ rule: "effects" as const, key: lease.key, at: effect.at, text }];
    }),
  );
}

/** The register itself: what it accepted never went back. */
function lowerFences({ judged, time }: Evidence): readonly Violation[] {
  const highest = new Map<string, number>();
  return judged.flatMap(({ accepted, at, fence, item, key, worker }) => {
    const seen = highest.get(key) ?? -Infinity;
    highest.set(key, Math.max(seen, fence));
    if (!accepted || fence >= seen) return [];
    const text =
      `The register of ${key} accepted an effect of ${worker} (fence ${fence}, item ${item}) at ${time(at)}, ` +
      `after it had seen fence ${seen}.`;
    return [{ rule: "effects" as const, key, at, text }];
  });
}

/** Nothing is done without a lease; and who is refused by the register while it may still trust its lease was not alone. */
function ofLeases({ judged, leases, rules, time }: Evidence): readonly Violation[] {
  const byName = new Map<string, Lease>();
  for (const lease of leases) byName.set(`${lease.by} ${lease.fence} ${lease.key} ${lease.item}`, lease);
  const others = new Map(leases.map((lease) => [`${lease.by} ${lease.fence} ${lease.key}`, lease]));
  return judged.flatMap(({ accepted, at, fence, highest, item, key, worker }) => {
    const tell = (text: string): readonly Violation[] => [{ rule: "effects", key, at, text }];
    const lease = byName.get(`${worker} ${fence} ${key} ${item}`);
    if (lease === undefined) {
      const other = others.get(`${worker} ${fence} ${key}`);
      const had = other === undefined ? "which it had not been given" : `which it had been given for ${other.item}`;
      return tell(`${worker} worked on ${item} of ${key} at ${time(at)} under fence ${fence}, ${had}.`);
    }
    const deadline = deadlineAt(lease, at, rules);
    if (accepted || at > deadline) return [];
    return tell(
      `The register of ${key} refused ${worker} (fence ${fence}, item ${item}) at ${time(at)}, because it had seen fence ${highest}; ` +
        `but the lease was good until ${time(deadline)}.`,
    );
  });
}
