/** When something was wrong, with whom: what may explain that an item ran twice, or that something was late. */
import type { Fact } from "../history/fact.ts";

export interface Trouble {
  readonly from: number;
  readonly to: number;
  readonly kind: string;
  readonly story: string;
  /** Undefined: everybody. */
  readonly hits: ReadonlySet<string> | undefined;
}

/** With so many processes asking all the time, a store that answers nobody for so long stands still. */
const SILENCE_MS = 500;

/** A renewal that comes so much of a lease too late may be too late; every process stands still for less than that at times. */
const HARMFUL_SHARE = 0.125;

const QUESTIONS: ReadonlySet<Fact["type"]> = new Set(["submit-sent", "settle-sent"]);
const ANSWERS: ReadonlySet<Fact["type"]> = new Set(["submit", "grant", "renew", "settle"]);
/** Faults between the processes and the store, or of the store itself. */
const OF_EVERYBODY: ReadonlySet<string> = new Set(["store", "cut-all", "slow-all", "kill-all"]);

/** While these last, the process does not run. */
const PAUSES: ReadonlySet<string> = new Set(["stop", "block", "pause"]);

export class Troubles {
  /** By their begin. */
  readonly faults: readonly Trouble[];
  readonly pauses: readonly Trouble[];
  readonly silences: readonly Trouble[];
  /** Calls of workers to the store that took long enough to cost a lease. */
  readonly slowCalls: readonly Trouble[];
  readonly #ofEverybody: readonly Trouble[];
  readonly #byProcess = new Map<string, Trouble[]>();
  readonly #harmfulMs: number;
  /** A store that just came back is still starting, and everybody connects and asks at once: what goes wrong then is the fault's. */
  readonly #aftermathMs: number;

  constructor(history: readonly Fact[], leaseMs: number) {
    this.#harmfulMs = leaseMs * HARMFUL_SHARE;
    this.#aftermathMs = leaseMs;
    this.faults = faultsOf(history);
    this.pauses = pausesOf(history);
    this.silences = silencesOf(history);
    this.#ofEverybody = [...this.faults.filter(({ hits }) => hits === undefined), ...this.silences];
    this.slowCalls = slowCallsOf(history, this.#harmfulMs);
    for (const trouble of [...this.faults, ...this.pauses, ...this.slowCalls]) {
      for (const process of trouble.hits ?? []) {
        const known = this.#byProcess.get(process);
        if (known === undefined) this.#byProcess.set(process, [trouble]);
        else known.push(trouble);
      }
    }
  }

  /** Something that hit the process, or everybody, within the time, and could cost it a lease. */
  during(process: string, from: number, to: number): Trouble | undefined {
    return this.ofProcess(process, from, to) ?? this.ofEverybody(from, to);
  }

  ofProcess(process: string, from: number, to: number): Trouble | undefined {
    return this.#byProcess
      .get(process)
      ?.find(
        (one) => one.from <= to && one.to >= from && (one.kind !== "pause" || one.to - one.from >= this.#harmfulMs),
      );
  }

  ofEverybody(from: number, to: number): Trouble | undefined {
    return this.#ofEverybody.find((one) => one.from <= to && one.to + this.#aftermathMs >= from);
  }

  /** The end of the last time before `at` at which the process was not running. A cut connection does not stop a process. */
  pausedUntil(process: string, at: number): number {
    let until = -Infinity;
    for (const { kind, from, to } of this.#byProcess.get(process) ?? []) {
      // One that is going on explains what is written down as it ends.
      if (PAUSES.has(kind) && from <= at) until = Math.max(until, Math.min(to, at));
    }
    return until;
  }
}

function faultsOf(history: readonly Fact[]): readonly Trouble[] {
  const ends = new Map<number, number>();
  for (const fact of history) if (fact.type === "fault-over") ends.set(fact.number, fact.at);
  return history
    .filter((fact) => fact.type === "fault")
    .map(({ at, number, kind, story, hits }) => ({
      from: at,
      to: ends.get(number) ?? Infinity,
      kind,
      story,
      hits: OF_EVERYBODY.has(kind) ? undefined : new Set(hits),
    }));
}

function pausesOf(history: readonly Fact[]): readonly Trouble[] {
  return history
    .filter((fact) => fact.type === "paused")
    .map(({ since, at, by, why }) => ({
      from: since,
      to: at,
      kind: "pause",
      story: `${by} ${why === "blocked" ? "was blocked" : "stood still"} for ${((at - since) / 1_000).toFixed(2)} s`,
      hits: new Set([by]),
    }));
}

/** A process that is stopped while it writes to a file keeps everybody from it: somebody asks, and nobody is answered. */
function silencesOf(history: readonly Fact[]): readonly Trouble[] {
  const found: Trouble[] = [];
  let askedAt: number | undefined;
  for (const { at, type } of history) {
    if (QUESTIONS.has(type)) askedAt ??= at;
    if (!ANSWERS.has(type)) continue;
    if (askedAt !== undefined && at - askedAt > SILENCE_MS) {
      const story = `the store answered nobody for ${((at - askedAt) / 1_000).toFixed(2)} s`;
      found.push({ from: askedAt, to: at, kind: "silence", story, hits: undefined });
    }
    askedAt = undefined;
  }
  return found;
}

/** On a machine with too much to do, or with a store that is slow, leases run out before their renewals are through. */
function slowCallsOf(history: readonly Fact[], harmfulMs: number): readonly Trouble[] {
  const found: Trouble[] = [];
  const sent = new Map<string, number>();
  const tell = (by: string, what: string, from: number, to: number): void => {
    if (to - from < harmfulMs) return;
    const story = `${by} waited ${((to - from) / 1_000).toFixed(2)} s for the answer to a ${what}`;
    found.push({ from, to, kind: "slow call", story, hits: new Set([by]) });
  };
  for (const fact of history) {
    if (fact.type === "settle-sent") sent.set(`${fact.by} ${fact.fence} ${fact.key}`, fact.at);
    else if (fact.type === "settle") {
      tell(fact.by, "settlement", sent.get(`${fact.by} ${fact.fence} ${fact.key}`) ?? fact.at, fact.at);
    } else if (fact.type === "renew") tell(fact.by, "renewal", fact.sentAt, fact.at);
  }
  return found;
}
