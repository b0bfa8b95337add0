import type { Random } from "../../../../kit/random.ts";

export type Style = "waits" | "obeys" | "takes" | "returns at once" | "throws at once" | "stops the worker";

/** What a handler does with one item. */
export interface Work {
  readonly style: Style;
  /** Of one that takes its time. */
  readonly ms: number;
}

export interface LoopSetting {
  /** What comes often. */
  readonly focus: "all" | "runs" | "solitude";
  /** So many in one process. */
  readonly loops: number;
  readonly concurrency: number;
  readonly attempts: number;
  /** The engine grants runs. */
  readonly runs: boolean;
  /** What keys of the engine have more items, as it says, and how many of them go on when that is asked for. */
  readonly moreShare: number;
  /** Most handlers take a few milliseconds at most. */
  readonly isQuick: boolean;
  readonly timeoutMs: number | undefined;
  /** What a claim that is called off brings all the same, and when. */
  readonly racing: number;
  readonly racingAfterMs: number;
  /** It fails instead. */
  readonly isRefused: boolean;
}

export interface LoopDeed {
  readonly kind:
    | "pass"
    | "grant"
    | "end"
    | "answer"
    | "renewals"
    | "settling"
    | "report"
    | "doubt"
    | "fail claim"
    | "stop"
    | "hurry";
  /** Of which loop. */
  readonly loop: number;
  readonly which: number;
  readonly ms: number;
  readonly count: number;
  /** Of a grant: one entry after the other, and from the first again. */
  readonly works: readonly Work[];
  readonly attempt: number;
  /** How many more items than one each lease covers, if so many were asked for. */
  readonly behind: number;
  /** Of the first keys of the answer. */
  readonly losses: number;
  readonly suspects: number;
  readonly how: "returned" | "threw" | "fatal";
  readonly renewals: "kept" | "taken" | "away" | "unheard" | "later" | "cancelled";
  readonly settling: "at once" | "later" | "refused" | "away";
  readonly report: "there" | "missing" | "away" | "refused";
}

export function drawLoopSetting(random: Random): LoopSetting {
  const focus = random.pick(["all", "runs", "solitude"] as const);
  const isLarge = focus === "all" && random.chance(0.2);
  return {
    focus,
    loops: isLarge ? 1 : random.pick(focus === "solitude" ? [1, 2, 2] : [1, 1, 2]),
    concurrency: isLarge ? 700 : random.between(1, 4),
    attempts: focus !== "runs" && random.chance(0.3) ? 1 : 3,
    runs: focus === "runs" || random.chance(0.7),
    moreShare: random.pick([0, 0.5, 1]),
    isQuick: focus === "runs" || random.chance(0.4),
    timeoutMs: random.pick([undefined, undefined, 1_500, 10]),
    racing: random.pick([0, 0, 1, 3]),
    racingAfterMs: random.pick([0, 0, 5, 400, 9_000]),
    isRefused: random.chance(0.2),
  };
}

export function drawLoopDeed(random: Random, setting: LoopSetting): LoopDeed {
  const { attempts, concurrency, focus, isQuick, loops } = setting;
  const often = ["pass", "pass", "pass", "grant", "grant", "grant", "end", "end", "answer"] as const;
  const rare = ["renewals", "settling", "report", "doubt", "doubt", "fail claim", "stop", "hurry"] as const;
  const short = random.between(0, 30);
  const longMs = random.pick([random.between(0, 200), random.between(0, 1_500), random.between(0, 7_000), 0]);
  return {
    kind: random.chance(isQuick ? 0.8 : 0.7) ? random.pick(often) : random.pick(rare),
    loop: random.between(1, loops) - 1,
    which: random.between(0, 99),
    ms: random.chance(isQuick ? 0.8 : 0.4) ? short : longMs,
    count: random.chance(concurrency > 4 || isQuick ? 0.5 : 0.1) ? random.between(100, 600) : random.between(0, 3),
    works: Array.from({ length: 5 }, () => drawWork(random, isQuick)),
    attempt: random.chance(isQuick ? 0.9 : 0.7) ? 1 : random.between(1, attempts + 1),
    behind: random.pick([0, 1, 2, 6]),
    losses: random.chance(focus === "solitude" ? 0.3 : 0.05) ? random.between(2, 3) : random.pick([0, 0, 0, 0, 0, 1]),
    suspects: random.between(1, 2),
    how: random.pick(["returned", "returned", "threw", "fatal"]),
    renewals: random.pick(["kept", "kept", "kept", "taken", "away", "unheard", "later", "cancelled"]),
    settling: random.pick(["at once", "at once", "later", "refused", "away"]),
    report: random.pick(["there", "there", "missing", "away", "refused"]),
  };
}

function drawWork(random: Random, isQuick: boolean): Work {
  if (random.chance(0.005)) return { style: "stops the worker", ms: 0 };
  const quick: readonly Style[] = ["takes", "takes", "takes", "returns at once", "returns at once", "throws at once"];
  const slow: readonly Style[] = ["waits", "waits", "obeys", "obeys", "takes", "returns at once", "throws at once"];
  const ms = random.chance(isQuick ? 0.85 : 0.4) ? random.between(0, 6) : random.between(0, 50);
  return { style: random.pick(isQuick && random.chance(0.95) ? quick : slow), ms };
}
