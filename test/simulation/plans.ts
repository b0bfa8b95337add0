import type { Random } from "../kit/random.ts";
import type { Settings } from "./settings.ts";

/** What is in store for one submitted item, whoever works on it. */
export interface ItemPlan {
  /** So many attempts fail before one succeeds. */
  readonly failures: number;
  readonly failure: "throw" | "fatal" | "later" | "odd";
  /** So many attempts kill their process. */
  readonly kills: number;
}

export interface SubmissionPlan {
  readonly token: number;
  readonly id: string | undefined;
  readonly key: string;
  readonly level: string;
  readonly delayMs: number;
  readonly mode: "fifo" | "latest" | "strict" | undefined;
}

export function drawItemPlan(random: Random, { quick, poisonous }: Settings): ItemPlan {
  return {
    // A failure ends a run, so there are fewer where there are to be runs.
    failures: random.chance(quick > 0 ? 0.9 : 0.6) ? 0 : random.between(1, 5),
    failure: random.pick(["throw", "throw", "fatal", "later", "odd"]),
    kills: random.chance(poisonous) ? random.between(1, 4) : 0,
  };
}

/** A line of items of one level that wait for one key: what a run is made of. */
export function inLine(
  random: Random,
  settings: Settings,
  plans: readonly SubmissionPlan[],
): readonly SubmissionPlan[] {
  const place = { key: random.pick(settings.keys), level: random.pick(settings.levels), delayMs: 0 };
  return plans.map((plan) => Object.assign({}, plan, place, plan.mode === "strict" ? { mode: "fifo" } : {}));
}

/** Two thirds carry an id; one in ten of those an id that somebody else used before, for something else. */
export function drawSubmission(random: Random, settings: Settings, token: number): SubmissionPlan {
  const original = random.chance(0.1) ? random.between(1, token) : token;
  return {
    token,
    id: random.chance(0.66) ? `order-${original}` : undefined,
    key: random.pick(settings.keys),
    level: random.pick(settings.levels),
    delayMs: random.chance(0.15) ? random.between(1, settings.leaseMs * 2) : 0,
    mode: random.chance(0.1) ? random.pick(["fifo", "latest", "strict"]) : undefined,
  };
}
