/** Reads the history of a run, knows nothing of how the engine works, and says which guarantee does not hold. */
import type { Happening, LastWords, RunEnding } from "./history.ts";
import { isCalm, type Plan } from "./plan.ts";

/** Leases end by whichever clock is ahead, and the wall's counts whole milliseconds. */
const PRECISION_MS = 1;

/** `once`: an item ends once. `clean`: nothing is left behind. `truth`: what was answered is what happened. */
export type Guarantee = "G1" | "G2" | "G4" | "G5" | "G9" | "once" | "clean" | "truth" | "surprise";

export interface Violation {
  readonly guarantee: Guarantee;
  readonly at: number;
  readonly key: string | undefined;
  readonly says: string;
}

export interface Statistics {
  readonly accepted: number;
  readonly grants: number;
  /** Items that ended twice because a fault made it impossible to know that they had. */
  readonly duplicates: number;
  readonly drainMs: number;
  readonly faults: Readonly<Record<string, number>>;
}

type Of<T extends Happening["type"]> = Extract<Happening, { readonly type: T }>;

interface Leased {
  readonly grant: Of<"grant">;
  /** When the write with its fence reached the store. */
  readonly madeAt: number;
  /** Stretches of time in which its holder may believe in it. */
  readonly believed: { readonly from: number; until: number }[];
  readonly calls: Call[];
  until: number;
}

interface Call {
  readonly type: "renew" | "settle";
  readonly call: number;
  readonly at: number;
  readonly until: number;
  readonly ended: readonly RunEnding[];
  readonly token: number | undefined;
  readonly ending?: string;
  result: string;
  repliedAt: number;
}

interface Submitted {
  readonly call: Of<"submit">;
  repliedAt: number;
  result: Of<"submitted">["result"] | "open";
  id: string | undefined;
}

interface Life {
  readonly submitted: Submitted;
  readonly grants: Of<"grant">[];
  /** Ends that were confirmed, when they were asked for, and how. */
  readonly ends: { readonly at: number; readonly how: string }[];
  /** Earliest moment at which it may have ended without a word. */
  mayEndAt: number;
  /** Leases under which it had ended when the next item of their runs began. */
  readonly endedUnder: Set<number>;
  yielded: boolean;
}

export function check(
  plan: Plan,
  happenings: readonly Happening[],
  last: LastWords,
): { readonly violations: readonly Violation[]; readonly statistics: Statistics } {
  return new Checker(plan, happenings, last).run();
}

class Checker {
  readonly #plan: Plan;
  readonly #happenings: readonly Happening[];
  readonly #last: LastWords;
  readonly #violations: Violation[] = [];
  readonly #writes = new Map<number, number>();
  readonly #leases = new Map<number, Leased>();
  readonly #submissions = new Map<number, Submitted>();
  readonly #lives = new Map<number, Life>();
  readonly #faults: Record<string, number> = {};
  readonly #steps: { readonly process: string | undefined; readonly at: number; readonly ms: number }[] = [];
  #duplicates = 0;

  constructor(plan: Plan, happenings: readonly Happening[], last: LastWords) {
    this.#plan = plan;
    this.#happenings = happenings;
    this.#last = last;
  }

  run(): { readonly violations: readonly Violation[]; readonly statistics: Statistics } {
    this.#read();
    this.#readEnds();
    this.#checkExclusive();
    this.#checkFences();
    this.#checkEnds();
    this.#checkIds();
    this.#checkOrder();
    this.#checkLastWords();
    const accepted = [...this.#submissions.values()].filter(({ result }) => result === "accepted").length;
    return {
      violations: this.#violations.toSorted((a, b) => a.at - b.at),
      statistics: {
        accepted,
        grants: this.#leases.size,
        duplicates: this.#duplicates,
        drainMs: this.#last.drainMs,
        faults: this.#faults,
      },
    };
  }

  #say(guarantee: Guarantee, at: number, key: string | undefined, says: string): void {
    this.#violations.push({ guarantee, at, key, says });
  }

  #read(): void {
    for (const one of this.#happenings) {
      switch (one.type) {
        case "write":
          this.#writes.set(one.sequence, one.at);
          break;
        case "fault":
          this.#faults[one.kind] = (this.#faults[one.kind] ?? 0) + 1;
          if (one.kind === "clock step" && (one.ms ?? 0) > 0) this.#stepForward(one.process, one.at, one.ms ?? 0);
          break;
        case "submit": {
          const submitted: Submitted = { call: one, repliedAt: Infinity, result: "open", id: one.id };
          this.#submissions.set(one.call, submitted);
          const nothing = { grants: [], ends: [], mayEndAt: Infinity, endedUnder: new Set<number>() };
          this.#lives.set(one.token, { submitted, ...nothing, yielded: false });
          break;
        }
        case "submitted": {
          const submitted = this.#submissions.get(one.call);
          if (submitted === undefined) break;
          submitted.repliedAt = one.at;
          submitted.result = one.result;
          submitted.id = one.id ?? submitted.id;
          break;
        }
        case "grant": {
          const until = this.#deadline(one.process, one.since, one.leaseMs);
          // A message stands for 64 fences: its own, and those of items that start before the next.
          const isWritten = one.fence % 64 === 0;
          const madeAt = (isWritten ? this.#writes.get(one.fence / 64) : undefined) ?? one.at;
          this.#leases.set(one.lease, { grant: one, madeAt, believed: [{ from: one.at, until }], calls: [], until });
          if (one.token !== undefined) this.#lives.get(one.token)?.grants.push(one);
          break;
        }
        case "begin": {
          const lease = this.#leases.get(one.lease);
          const { at, token, id, attempt } = one;
          if (lease !== undefined) this.#lives.get(token)?.grants.push({ ...lease.grant, at, token, id, attempt });
          this.#lives.get(one.before)?.endedUnder.add(one.lease);
          break;
        }
        case "renew":
        case "settle": {
          const lease = this.#leases.get(one.lease);
          if (lease === undefined) break;
          const { type, call, at } = one;
          lease.calls.push({
            type,
            call,
            at,
            until: lease.until,
            result: "open",
            repliedAt: Infinity,
            ended: one.ended,
            token: type === "settle" ? one.token : undefined,
            ...(type === "settle" ? { ending: one.ending } : {}),
          });
          break;
        }
        case "renewed":
        case "settled": {
          const lease = this.#leases.get(one.lease);
          const call = lease?.calls.find((each) => each.call === one.call);
          if (lease === undefined || call === undefined) break;
          call.result = one.result;
          call.repliedAt = one.at;
          if (one.type === "renewed" && one.result === "ok" && one.since !== undefined) {
            lease.until = this.#deadline(lease.grant.process, one.since, lease.grant.leaseMs);
            lease.believed.push({ from: one.at, until: lease.until });
          }
          break;
        }
        default:
          break;
      }
    }
  }

  /** As its holder counts, after the steps of its clock so far. */
  #deadline(process: string, since: number, leaseMs: number): number {
    let until = since + leaseMs;
    for (const step of this.#steps)
      if (step.process === process && step.at >= since && step.at < until) until = Math.max(step.at, until - step.ms);
    return until;
  }

  /** Its holder goes by whichever clock says more: its leases end so much earlier. */
  #stepForward(process: string | undefined, at: number, ms: number): void {
    this.#steps.push({ process, at, ms });
    for (const lease of this.#leases.values()) {
      if (lease.grant.process !== process) continue;
      for (const stretch of lease.believed) if (stretch.until > at) stretch.until = Math.max(at, stretch.until - ms);
      if (lease.until > at) lease.until = Math.max(at, lease.until - ms);
    }
  }

  /** How each item ended, as far as anybody was told. */
  #readEnds(): void {
    const byId = new Map<string, Life[]>();
    for (const life of this.#lives.values()) {
      const names = new Set([life.submitted.id, ...life.grants.map(({ id }) => id)]);
      for (const id of names) if (id !== undefined) byId.set(id, [...(byId.get(id) ?? []), life]);
    }
    for (const { calls } of this.#leases.values()) {
      this.#readEndsOfRun(calls);
      for (const { type, at, token, ending = "", result } of calls) {
        const life = token === undefined ? undefined : this.#lives.get(token);
        if (life === undefined) continue;
        if (type !== "settle" || result === "lost") continue;
        if (["done", "dead", "cancelled"].includes(ending)) {
          if (result === "settled") life.ends.push({ at, how: ending });
          else life.mayEndAt = Math.min(life.mayEndAt, at);
        }
      }
    }
    for (const one of this.#happenings) {
      if (one.type === "settle" && one.yields) {
        const life = one.token === undefined ? undefined : this.#lives.get(one.token);
        if (life !== undefined) life.yielded = true;
      }
      if (one.type === "cancel") {
        const answer = this.#happenings.find((each) => each.type === "cancelled" && each.call === one.call);
        const result = answer?.type === "cancelled" ? answer.result : "unknown";
        for (const life of byId.get(one.id) ?? []) {
          if (result === "cancelled") life.ends.push({ at: one.at, how: "cancel" });
          else if (result === "requested" || result === "unknown") life.mayEndAt = Math.min(life.mayEndAt, one.at);
        }
      }
      if (one.type === "submitted" && one.result === "accepted") {
        const at = this.#submissions.get(one.call)?.call.at ?? one.at;
        // Of two that were submitted with one id at once both may have waited.
        for (const id of new Set(one.replaced))
          for (const life of byId.get(id) ?? []) life.ends.push({ at, how: "replaced" });
      }
    }
    for (const { call, result } of this.#submissions.values()) {
      if (call.mode !== "latest" || (result !== "unknown" && result !== "open")) continue;
      for (const life of this.#lives.values())
        if (life.submitted.call.key === call.key) life.mayEndAt = Math.min(life.mayEndAt, call.at);
    }
  }

  /** What was said twice of an item under one lease is one end. */
  #readEndsOfRun(calls: readonly Call[]): void {
    const confirmed = new Set<number>();
    for (const { at, ended, result } of calls) {
      if (result === "lost") continue;
      const isSure = result === "ok" || result === "settled";
      for (const { token, how } of ended) {
        const life = this.#lives.get(token);
        if (life === undefined || confirmed.has(token)) continue;
        if (isSure) confirmed.add(token);
        if (isSure) life.ends.push({ at, how });
        else life.mayEndAt = Math.min(life.mayEndAt, at);
      }
    }
  }

  #leasesOf(key: string): Leased[] {
    return [...this.#leases.values()].filter(({ grant }) => grant.key === key).toSorted((a, b) => a.madeAt - b.madeAt);
  }

  /** Nobody is given a key while another may still believe that it is theirs. */
  #checkExclusive(): void {
    for (const key of this.#plan.keys) {
      const leases = this.#leasesOf(key);
      for (const [index, { grant, madeAt }] of leases.entries()) {
        for (const earlier of leases.slice(0, index)) {
          const givenUpAt = Math.min(...earlier.calls.filter(({ type }) => type === "settle").map(({ at }) => at));
          const held = earlier.believed.some(
            ({ from, until }) => from <= grant.at && Math.min(until, givenUpAt) > madeAt,
          );
          if (!held) continue;
          const { lease, process, fence } = earlier.grant;
          this.#say(
            "G1",
            grant.at,
            key,
            `lease ${grant.lease} (fence ${grant.fence}, ${grant.process}) was made at ${madeAt.toFixed(2)}, while ${process} holds lease ${lease} (fence ${fence}) until ${Math.min(earlier.until, givenUpAt).toFixed(2)}`,
          );
        }
      }
    }
  }

  #checkFences(): void {
    for (const key of this.#plan.keys) {
      const leases = this.#leasesOf(key);
      for (const [index, { grant }] of leases.entries()) {
        const before = leases[index - 1]?.grant;
        if (before !== undefined && grant.fence <= before.fence)
          this.#say(
            "G2",
            grant.at,
            key,
            `fence ${grant.fence} of lease ${grant.lease} does not rise above ${before.fence} of lease ${before.lease}`,
          );
      }
      for (const { grant, calls } of leases) {
        // Whoever heard nothing asks again for what was asked for then, and its next item may have begun since.
        const settledAt = Math.min(...calls.filter(({ type }) => type === "settle").map(({ at }) => at));
        for (const { type, at, until, result } of calls) {
          if (result !== "ok" && result !== "settled") continue;
          const askedAt = type === "settle" ? settledAt : at;
          const newer = leases.find((other) => other.grant.fence > grant.fence && other.madeAt < askedAt);
          if (newer !== undefined)
            this.#say(
              "G2",
              at,
              key,
              `${type} of lease ${grant.lease} (fence ${grant.fence}) says ${result}, after lease ${newer.grant.lease} (fence ${newer.grant.fence}) was made`,
            );
          if (at > until)
            this.#say(
              "G2",
              at,
              key,
              `${type} of lease ${grant.lease} says ${result}, but the lease ran out at ${until.toFixed(2)}`,
            );
        }
      }
    }
  }

  #checkEnds(): void {
    const forgetful = (this.#faults["acks forgotten"] ?? 0) > 0;
    const calm = isCalm(this.#plan);
    for (const [token, { submitted, ends, mayEndAt, yielded, grants }] of this.#lives) {
      const { key, keeps, delayMs } = submitted.call;
      const [first, second] = ends;
      if (submitted.result === "accepted" && first === undefined && mayEndAt === Infinity)
        this.#say("G4", this.#happenings.at(-1)?.at ?? 0, key, `item ${token} was accepted and never ended`);
      if (second !== undefined) {
        const excused = forgetful || (!calm && (delayMs > 0 || yielded));
        if (excused) this.#duplicates += 1;
        else
          this.#say(
            "once",
            Math.max(...ends.map(({ at }) => at)),
            key,
            `item ${token} ended ${ends.length} times: ${ends.map(({ at, how }) => `${how} at ${at.toFixed(2)}`).join(", ")}`,
          );
      }
      const { id = grants[0]?.id } = submitted;
      const outcome =
        id === undefined || !keeps || submitted.result !== "accepted" ? undefined : this.#last.outcomes.get(id);
      if (outcome !== undefined && !["done", "dead", "cancelled", "replaced"].includes(outcome))
        this.#say(
          "G4",
          this.#happenings.at(-1)?.at ?? 0,
          key,
          `item ${token} (${id ?? ""}) is to be remembered, but is ${outcome}`,
        );
      if (outcome === "done" && this.#lives.size > 0 && !this.#mayBeDone(token))
        this.#say(
          "truth",
          this.#happenings.at(-1)?.at ?? 0,
          key,
          `item ${token} is remembered as done, but nobody was told so`,
        );
    }
    for (const { grant, calls } of this.#leases.values())
      for (const { at, type, result } of calls)
        if (result === "open" && !this.#crashedAfter(grant.process, at))
          this.#say("truth", at, grant.key, `${type} of lease ${grant.lease} was never answered`);
    if (!calm) return;
    for (const { grant, calls } of this.#leases.values())
      for (const { at, until, result, type, repliedAt } of calls)
        // Once the lease has run out, a renewal that says what has ended cannot know whether that was written before somebody else came.
        if ((result === "unknown" || result === "lost") && repliedAt < until - PRECISION_MS)
          this.#say(
            "truth",
            at,
            grant.key,
            `${type} of lease ${grant.lease} says ${result}, although nothing went wrong`,
          );
  }

  #crashedAfter(process: string, at: number): boolean {
    return this.#happenings.some(
      (one) => one.type === "fault" && one.kind === "crash" && one.process === process && one.at >= at,
    );
  }

  #mayBeDone(token: number): boolean {
    const isIt = ({ token: one, how }: RunEnding): boolean => one === token && how === "done";
    return [...this.#leases.values()].some(({ calls }) =>
      calls.some((call) => {
        const isLast = call.token === token && call.ending === "done";
        return call.result !== "lost" && (isLast || call.ended.some(isIt));
      }),
    );
  }

  /** Of several submissions with one id one is accepted, and one is run. */
  #checkIds(): void {
    const byId = Map.groupBy(
      [...this.#lives].filter(([, { submitted }]) => submitted.call.id !== undefined),
      ([, { submitted }]) => submitted.call.id ?? "",
    );
    for (const [id, lives] of byId) {
      const key = lives[0]?.[1].submitted.call.key;
      const accepted = lives.filter(([, { submitted }]) => submitted.result === "accepted");
      if (accepted.length > 1)
        this.#say(
          "G9",
          accepted[1]?.[1].submitted.repliedAt ?? 0,
          key,
          `id ${id} was accepted ${accepted.length} times: items ${accepted.map(([token]) => token).join(", ")}`,
        );
      const run = lives.filter(([, { grants }]) => grants.length > 0);
      if (run.length > 1)
        this.#say(
          "G9",
          run[1]?.[1].grants[0]?.at ?? 0,
          key,
          `id ${id} stands for several items that were run: ${run.map(([token]) => token).join(", ")}`,
        );
    }
  }

  /** What came first goes first; what failed keeps its place. */
  #checkOrder(): void {
    for (const [token, { submitted: mine, grants, ends }] of this.#lives) {
      if (mine.call.delayMs > 0) continue;
      for (const [other, life] of this.#lives) {
        const { submitted: theirs } = life;
        if (other === token || theirs.call.key !== mine.call.key || theirs.result !== "accepted") continue;
        if (theirs.call.delayMs > 0 || life.yielded || theirs.call.level > mine.call.level) continue;
        const endedAt = Math.min(life.mayEndAt, ...life.ends.map(({ at }) => at));
        for (const grant of grants) {
          // Once ended, whatever comes again is a duplicate, and counted as such.
          if (ends.some(({ at }) => at < grant.at) || endedAt <= grant.at) continue;
          if (life.endedUnder.has(grant.lease)) continue;
          const arrivedBy = theirs.call.level === mine.call.level ? mine.call.at : this.#lastSettle(grant);
          if (theirs.repliedAt >= arrivedBy) continue;
          this.#say(
            "G5",
            grant.at,
            grant.key,
            `item ${token} (level ${mine.call.level}) was given out before item ${other} (level ${theirs.call.level}), which was accepted at ${theirs.repliedAt.toFixed(2)}`,
          );
        }
      }
    }
  }

  /** Whoever held the key last looked at the line after this. */
  #lastSettle({ key, lease }: Of<"grant">): number {
    const made = this.#leases.get(lease)?.madeAt ?? 0;
    const before = this.#leasesOf(key).findLast((other) => other.madeAt < made);
    const settled = before?.calls.find(({ type, result }) => type === "settle" && result === "settled");
    return settled?.at ?? 0;
  }

  #checkLastWords(): void {
    const { drained, left, surprises } = this.#last;
    const at = this.#happenings.at(-1)?.at ?? 0;
    if (!drained) {
      const remains = left.every((one) => one.includes("idle"));
      const key = undefined;
      this.#say(remains ? "clean" : "G4", at, key, `when time was up there was still: ${left.join(" | ")}`);
    }
    for (const surprise of surprises) this.#say("surprise", at, undefined, surprise);
  }
}
