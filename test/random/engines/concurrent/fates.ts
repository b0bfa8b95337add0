import type { Ending } from "../../../../src/engine/port.ts";
import { type Course, coursesOf, type Turn } from "./courses.ts";
import { type Cancelled, type History, type Leased, runOf, type Span, type Submitted, tagOf } from "./history.ts";

/** Where an item can be, by what the history says. */
export type State = "live" | "dead" | "ended";

/** How an item came to its end for good: by a call of this span. */
export interface End extends Span {
  readonly how: "done" | "cancelled" | "replaced";
  /** The lease under which it ran. */
  readonly fence?: number;
  readonly ending?: Ending;
}

/** The item was of the run of a lease, so far behind its head. */
export interface Seen {
  readonly leased: Leased;
  readonly index: number;
  readonly course: Course;
}

/** All that the history says of one item. */
export interface Fate {
  readonly tag: string;
  /** Undefined: the reply to its submission was lost, and it has not been heard of. */
  readonly id: string | undefined;
  readonly submitted: Submitted;
  /** By their fences. */
  readonly turns: readonly Turn[];
  /** The leases that covered it, by their fences. */
  readonly seen: readonly Seen[];
  readonly cancels: readonly Cancelled[];
  readonly ends: readonly End[];
}

/** The items that were accepted, and those that may have been. */
export function fatesOf(history: History): readonly Fate[] {
  const courses = coursesOf(history);
  const turns = Map.groupBy(
    courses.flatMap((course) => course.turns),
    ({ item }) => tagOf(item),
  );
  const seen = Map.groupBy(
    courses.flatMap((course) =>
      runOf(course.leased).map((item, index) => ({ tag: tagOf(item), item, leased: course.leased, index, course })),
    ),
    ({ tag }) => tag,
  );
  const cancels = Map.groupBy(history.cancelled, ({ id }) => id);
  const replaced = new Map<string, Submitted>();
  for (const one of history.submitted)
    if (one.result?.ok === true) for (const id of one.result.accepted.replaced) replaced.set(id, one);
  return history.submitted.flatMap((submitted): readonly Fate[] => {
    const { tag, result } = submitted;
    if (result !== undefined && (!result.ok || result.accepted.duplicate)) return [];
    const own = (turns.get(tag) ?? []).toSorted((a, b) => a.lease.fence - b.lease.fence);
    const ownSeen = (seen.get(tag) ?? []).toSorted((a, b) => a.leased.lease.fence - b.leased.lease.fence);
    const id = result?.accepted.id ?? ownSeen[0]?.item.id;
    // A reply that was lost leaves open which submission of an id it was.
    const ownCancels = id === undefined || result === undefined ? [] : (cancels.get(id) ?? []);
    const by = id === undefined ? undefined : replaced.get(id);
    const ends: End[] = [
      ...own.flatMap(endOf),
      ...ownCancels
        .filter((one) => one.result === "cancelled")
        .map(({ begun, ended }): End => ({ begun, ended, how: "cancelled" })),
      ...(by === undefined || result === undefined
        ? []
        : [{ begun: by.begun, ended: by.ended, how: "replaced" } as const]),
    ];
    return [{ tag, id, submitted, turns: own, seen: ownSeen, cancels: ownCancels, ends }];
  });
}

function endOf({ lease: { fence }, end }: Turn): readonly End[] {
  if (end === undefined) return [];
  const { begun, ended, ending } = end;
  return ending.type === "done" || ending.type === "cancelled"
    ? [{ begun, ended, how: ending.type, fence, ending }]
    : [];
}

/** How the lease says that one ended which it gave back, and which somebody had asked to cancel while it was covered. */
export function cancelledWith({ tag, cancels }: Fate, { leased, course: { over } }: Seen): Span | undefined {
  if (over?.left.some((item) => tagOf(item) === tag) !== true) return undefined;
  const isAsked = cancels.some(
    ({ result, begun, ended }) => result === "requested" && begun > leased.ended && ended < over.begun,
  );
  return isAsked ? over : undefined;
}

/** It runs, to whoever cancels it, and was not handed out: its key was started for a worker before that asked for more. */
export function endsUnbegun({ seen, cancels }: Fate): boolean {
  return seen.length === 0 && cancels.some(({ result }) => result === "requested");
}

/** The states that an item can be in after all that was asked, and answered, before. */
export function statesOf(fate: Fate, history: History): ReadonlySet<State> {
  if (fate.ends.length > 0) return new Set<State>(["ended"]);
  if (fate.seen.some((seen) => cancelledWith(fate, seen) !== undefined)) return new Set<State>(["ended"]);
  // What was started ahead ends when it is given back.
  if (endsUnbegun(fate)) return new Set<State>(["live", "ended"]);
  const last = fate.turns.at(-1);
  const since = Math.min(last?.begun ?? Infinity, fate.seen.at(-1)?.leased.begun ?? Infinity);
  // Who was told that it runs, or is covered, asked for its end.
  const wanted = fate.cancels.filter(({ result, ended }) => result === "requested" && ended > since);
  const isDead = last?.end?.ending.type === "dead";
  if (last?.end === undefined || (!isDead && wanted.length === 0))
    return new Set<State>(wanted.length > 0 ? ["live", "ended"] : ["live"]);
  if (isDead)
    return new Set<State>([...afterDeath(last.end, history), ...(wanted.length > 0 ? (["ended"] as const) : [])]);
  const { end } = last;
  if (wanted.some(({ ended, begun }) => ended < end.begun && begun > last.ended)) return new Set<State>(["ended"]);
  return new Set<State>(["live", "ended"]);
}

function afterDeath(death: Span, history: History): ReadonlySet<State> {
  const states = new Set<State>();
  const later = history.revived.filter(({ ended }) => ended > death.begun);
  for (const { action } of later) states.add(action === "retry" ? "live" : "ended");
  if (!later.some(({ begun, count }) => begun > death.ended && count !== undefined)) states.add("dead");
  return states;
}

/** Nothing has changed it since it was accepted, as long as this call lasted. */
export function waitedThrough(fate: Fate, { begun, ended }: Span): boolean {
  if (fate.submitted.result === undefined || fate.submitted.ended >= begun) return false;
  const touched = [...fate.turns, ...fate.ends, ...fate.cancels, ...open(fate)];
  return !touched.some((one) => one.begun <= ended);
}

/** Leases under which it may have run. */
function open(fate: Fate): readonly Span[] {
  return fate.seen.flatMap(({ leased, course }) => (course.isOpen ? [leased] : []));
}

/** When the lease is over, as far as its holder knows. */
export function leaseEnd(leased: Leased, history: History): number {
  const moved = history.renewed.flatMap((one) =>
    one.leased === leased && one.result?.ok === true ? [one.result.since.monotonic + one.leaseMs] : [],
  );
  // A renewal may also have made it shorter.
  return moved.at(-1) ?? leased.lease.since.monotonic + leased.leaseMs;
}

/** The earliest that it can be over. */
export function leaseSurelyUntil(leased: Leased, history: History): number {
  const moved = history.renewed.filter((one) => one.leased === leased);
  const first = leased.lease.since.monotonic + leased.leaseMs;
  return Math.min(first, ...moved.map(({ begun, leaseMs }) => begun + leaseMs));
}
