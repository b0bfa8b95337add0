/** What the page draws: times in milliseconds since the begin, names as indices. */
import type { Evidence } from "../checker/evidence.ts";
import { byKey, endOf, type Lease } from "../checker/lease.ts";
import { repeatsOf } from "../checker/rules/repeats.ts";
import { takeoversOf } from "../checker/rules/takeover.ts";
import type { Violation } from "../checker/violation.ts";

export interface PageData {
  readonly lengthMs: number;
  /** By place: `worker3` is one colour, whoever of its processes it was. */
  readonly workers: readonly string[];
  readonly faults: readonly PageFault[];
  readonly rows: readonly PageRow[];
}

export interface PageFault {
  readonly from: number;
  readonly to: number;
  readonly story: string;
  /** Of everybody, or of a few. */
  readonly wide: boolean;
}

export interface PageRow {
  readonly key: string;
  readonly leases: readonly PageLease[];
  /** When a fault took the key from its worker. */
  readonly losses: readonly { readonly at: number; readonly text: string }[];
  readonly violations: readonly { readonly at: number; readonly text: string }[];
}

/** From, to, index of the worker, how it ended, what to say about it. Short, because there are tens of thousands. */
export type PageLease = readonly [from: number, to: number, worker: number, end: LeaseEnd, text: string];

/** `d` done, `r` given back to be tried again, `x` dead letter or taken back, `l` lost. A capital letter: the item had run before. */
export type LeaseEnd = "d" | "r" | "x" | "l" | "D" | "R" | "X" | "L";

export function pageData(evidence: Evidence, violations: readonly Violation[]): PageData {
  const { leases, rules, troubles, history } = evidence;
  const since = (at: number): number => Math.round((at - rules.at) * 10) / 10;
  const workers = [...new Set(leases.map(({ by }) => placeOf(by)))].toSorted();
  const again = new Set(repeatsOf(evidence).map((repeat) => repeat.again));
  const losses = Map.groupBy(takeoversOf(evidence), ({ lost }) => lost.key);
  const broken = Map.groupBy(violations, ({ key }) => key ?? "");
  const end = history.findLast((fact) => fact.type === "drained")?.at ?? history.at(-1)?.at ?? rules.at;
  const rows = byKey(leases).map((ofKey): PageRow => {
    const key = ofKey[0]?.key ?? "";
    return {
      key,
      leases: ofKey.map((lease) => drawn(lease, workers, again.has(lease), since)),
      losses: (losses.get(key) ?? []).map(({ fault, next, tookMs }) => ({
        at: since(fault.from),
        text: `${fault.story}; ${next.by} had the key ${(tookMs / 1_000).toFixed(2)} s later`,
      })),
      violations: (broken.get(key) ?? []).map(({ at, text }) => ({ at: since(at), text })),
    };
  });
  return {
    lengthMs: since(end),
    workers,
    faults: troubles.faults.map(({ from, to, story, hits }) => ({
      from: since(from),
      to: since(Math.min(to, end)),
      story,
      wide: hits === undefined,
    })),
    rows: rows.toSorted((a, b) => interest(b) - interest(a)),
  };
}

/** What a person wants to see first: what is broken, then what was lost, then what was busy. */
function interest({ violations, losses, leases }: PageRow): number {
  return violations.length * 1e6 + losses.length * 1e4 + leases.length;
}

function drawn(lease: Lease, workers: readonly string[], isRepeat: boolean, since: (at: number) => number): PageLease {
  const end = lastLetter(lease);
  const text = `${lease.by}, item ${lease.item} (${lease.level}), attempt ${lease.attempt}, fence ${lease.fence}`;
  return [
    since(lease.grantedAt),
    since(Math.max(endOf(lease), lease.grantedAt)),
    workers.indexOf(placeOf(lease.by)),
    isRepeat ? CAPITALS[end] : end,
    text,
  ];
}

const CAPITALS = { d: "D", r: "R", x: "X", l: "L" } as const;

function lastLetter({ ending, settled, releasedAt, until }: Lease): "d" | "r" | "x" | "l" {
  if (releasedAt === undefined || releasedAt > until || settled?.outcome === "fail") return "l";
  return ending === "done" ? "d" : ending === "dead" || ending === "cancelled" ? "x" : "r";
}

function placeOf(process: string): string {
  return process.split(".")[0] ?? process;
}
