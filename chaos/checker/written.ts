/** Histories written by hand, for the checker's own tests: times in milliseconds, short names, sensible defaults. */
import type { Fact, Outcome } from "../history/fact.ts";

export const LEASE_MS = 2_000;
export const MARGIN_MS = 500;

export const run: Fact = {
  type: "run",
  at: 0,
  by: "run",
  store: "by hand",
  seed: 0,
  leaseMs: LEASE_MS,
  marginMs: MARGIN_MS,
  levels: ["high", "normal", "low"],
};

export interface ItemOptions {
  readonly key?: string;
  readonly level?: string;
  readonly id?: string;
  readonly call?: number;
  readonly outcome?: Outcome;
  readonly duplicate?: boolean;
  readonly by?: string;
}

/** Sent at one moment and answered a millisecond later. */
export function submitted(item: string, at: number, options: ItemOptions = {}): readonly Fact[] {
  const { key = "k", level = "normal", id, outcome = "ok", duplicate = false, by = "s1" } = options;
  const call = options.call ?? at;
  const receipt = { id: id ?? `@${item}`, key, level, duplicate };
  return [
    { type: "submit-sent", at, by, call, item, key, level, ...(id === undefined ? {} : { id }) },
    { type: "submit", at: at + 1, by, call, item, outcome, ...(outcome === "ok" ? { receipt } : {}) },
  ];
}

export interface LeaseOptions {
  readonly key?: string;
  readonly level?: string;
  readonly since?: number;
  readonly attempt?: number;
  /** As the store calls it. */
  readonly id?: string;
  /** The others that the lease covers. */
  readonly behind?: readonly string[];
}

export function granted(by: string, item: string, fence: number, at: number, options: LeaseOptions = {}): Fact {
  const { key = "k", level = "normal", since = at - 1, attempt = 1, id = "", behind } = options;
  const grant = { type: "grant" as const, at, by, since, item, id, key, level, fence, attempt };
  return behind === undefined ? grant : { ...grant, behind: behind.map((one) => ({ item: one, id: "", attempt: 1 })) };
}

export function renewed(by: string, fence: number, at: number, since: number = at - 1, key = "k"): Fact {
  return { type: "renew", at, by, sentAt: at - 1, key, fence, outcome: "ok", since };
}

/** A renewal whose answer was lost. */
export function unanswered(by: string, fence: number, at: number, key = "k"): Fact {
  return { type: "renew", at, by, sentAt: at - 1, key, fence, outcome: "unknown" };
}

/** Sent at one moment and decided by the register a moment later. */
export function effect(
  by: string,
  item: string,
  fence: number,
  at: number,
  options: {
    readonly accepted?: boolean;
    readonly step?: "began" | "finished";
    readonly highest?: number;
    readonly key?: string;
  } = {},
): readonly Fact[] {
  const { accepted = true, step = "finished", highest = fence, key = "k" } = options;
  const shown = { item, key, fence, step };
  return [
    { type: "effect-sent", at, by, ...shown },
    { type: "judged", at: at + 1, by: "register", worker: by, ...shown, accepted, highest },
    { type: "effect", at: at + 2, by, ...shown, outcome: accepted ? "ok" : "fail" },
  ];
}

export function settled(
  by: string,
  item: string,
  fence: number,
  at: number,
  options: {
    readonly ending?: string;
    readonly outcome?: Outcome;
    readonly key?: string;
    readonly delayMs?: number;
    /** Items of its run that are done, too. */
    readonly done?: readonly string[];
  } = {},
): readonly Fact[] {
  const { ending = "done", outcome = "ok", key = "k", delayMs, done: before } = options;
  const delay = delayMs === undefined ? {} : { delayMs };
  const ended = before === undefined ? {} : { ended: before.map((one) => ({ item: one, ending: "done" })) };
  return [
    { type: "settle-sent", at, by, item, key, fence, ending, ...delay, ...ended },
    { type: "settle", at: at + 1, by, item, key, fence, ending, outcome, ...ended },
  ];
}

/** One run of an item from beginning to end, in ten milliseconds. */
export function done(by: string, item: string, fence: number, at: number, options: LeaseOptions = {}): readonly Fact[] {
  const key = options.key ?? "k";
  return [
    granted(by, item, fence, at, options),
    ...effect(by, item, fence, at + 5, { key }),
    ...settled(by, item, fence, at + 9, { key }),
  ];
}

let faults = 0;

export function fault(kind: string, hits: readonly string[], from: number, to: number): readonly Fact[] {
  faults += 1;
  return [
    { type: "fault", at: from, by: "run", number: faults, kind, hits, story: `${kind} of ${hits.join(", ")}` },
    { type: "fault-over", at: to, by: "run", number: faults },
  ];
}

export function drained(at: number, left = 0): Fact {
  return { type: "drained", at, by: "run", left };
}

export function final(item: string, state: string, at: number): Fact {
  return { type: "final", at, by: "run", item, state };
}

/** Sent at one moment and answered a millisecond later. */
export function cancelled(item: string, at: number, result: "cancelled" | "requested" | "ended" | "missing"): Fact[] {
  return [
    { type: "cancel-sent", at, by: "s1", item },
    { type: "cancel", at: at + 1, by: "s1", item, result },
  ];
}

export function deadLetters(items: readonly string[], at: number): Fact {
  return { type: "dead-letters", at, by: "run", items };
}

export function exited(process: string, trouble: string, at: number): Fact {
  return { type: "exited", at, by: "run", process, trouble };
}

/** Items are given out under the id they were accepted with, unless the history says otherwise. */
export function history(...facts: readonly (Fact | readonly Fact[])[]): readonly Fact[] {
  const all = [run, ...facts.flat()].toSorted((a, b) => a.at - b.at);
  const ids = new Map(all.flatMap((fact) => (fact.type === "submit-sent" ? [[fact.item, fact.id] as const] : [])));
  const idOf = (item: string, id: string): string => (id === "" ? (ids.get(item) ?? `@${item}`) : id);
  const named = (fact: Fact): Fact => {
    if (fact.type !== "grant") return fact;
    const grant = { ...fact, id: idOf(fact.item, fact.id) };
    const { behind } = fact;
    if (behind === undefined) return grant;
    return { ...grant, behind: behind.map((one) => Object.assign({}, one, { id: idOf(one.item, one.id) })) };
  };
  return all.map(named);
}
