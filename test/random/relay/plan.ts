/** What is drawn from a seed: the settings of a relay, and a script of what happens to it. */
import type { DeadLetterSettings, RelayRetry } from "../../../src/relay/index.ts";
import { Random } from "../../kit/random.ts";
import type { Fault, Operation } from "./model-queue.ts";

/** What the handler does with one delivery of a message. */
export interface Behaviour {
  /**
   * `ignores`: its work does not end before its signal fires. `deaf`: not even then. `later`: says when to come again.
   */
  readonly does: "ends" | "fails" | "later" | "refuses" | "ignores" | "deaf";
  readonly ms: number;
}

export type Step =
  | {
      readonly step: "put";
      readonly source: string;
      readonly id: string;
      readonly key: string | undefined;
      /** By delivery; the last one goes on for ever. */
      readonly behaviours: readonly Behaviour[];
    }
  | { readonly step: "pass"; readonly ms: number }
  | {
      readonly step: "fault";
      readonly source: string;
      readonly operation: Operation;
      readonly fault: Fault;
      readonly times: number;
      readonly ms: number;
    }
  | { readonly step: "keys-away"; readonly ms: number }
  /** Somebody else holds a key for a while. */
  | { readonly step: "hold-key"; readonly key: string; readonly ms: number }
  | { readonly step: "restart"; readonly graceMs: number; readonly hurryMs: number | undefined }
  | { readonly step: "reload"; readonly concurrency: number };

export interface SourcePlan {
  readonly name: string;
  readonly route: number;
  readonly kind: "polls" | "told";
  readonly isFifo: boolean;
  readonly firstHoldMs: number;
  readonly holdMs: number;
  /** The longest that a request takes. */
  readonly latencyMs: number;
  readonly hasDeadLetters: boolean;
  readonly counts: "receipts" | "deliveries" | "nothing";
  readonly weight: number;
  readonly retry: RelayRetry;
  readonly deadLetter: DeadLetterSettings;
}

export interface KeysPlan {
  readonly leaseMs: number;
  readonly waiting: number;
  readonly waitMs: number;
  readonly awayMs: number;
}

export interface Plan {
  readonly seed: number;
  readonly sources: readonly SourcePlan[];
  readonly routes: number;
  readonly choice: "strict" | "weighted";
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly graceMs: number;
  readonly keys: KeysPlan | undefined;
  /** The key is taken out of the content, and not from the source. */
  readonly keyInContent: boolean;
  /** A transform of the route takes so long at most; ids with an exclamation mark are bad data to it. */
  readonly transformMs: number | undefined;
  readonly script: readonly Step[];
}

export function drawPlan(seed: number): Plan {
  const random = new Random(seed);
  const routes = random.chance(0.25) ? 2 : 1;
  const count = Math.max(routes, random.between(1, 3));
  const sources = Array.from({ length: count }, (_, index) =>
    drawSource(random, index, index % routes, index === count - 1),
  );
  const keys = random.chance(0.5) ? drawKeys(random) : undefined;
  const keyInContent = random.chance(0.3);
  const transformMs = random.chance(0.3) ? random.between(0, 300) : undefined;
  const plan = {
    seed,
    sources,
    routes,
    choice: random.pick(["strict", "weighted"] as const),
    concurrency: random.between(1, 4),
    timeoutMs: random.pick([3_000, 10_000, 60_000]),
    graceMs: random.pick([0, 1_000, 20_000]),
    keys,
    keyInContent,
    transformMs,
  };
  return { ...plan, script: drawScript(random, plan) };
}

function drawSource(random: Random, index: number, route: number, isLast: boolean): SourcePlan {
  const isFifo = random.chance(0.3);
  const deadLetter = random.pick<DeadLetterSettings>([
    { to: "source" },
    { to: "source" },
    { to: "drop" },
    { to: "queue", store: "memory:", queue: "letters" },
  ]);
  const backoffMs = random.pick([0, 100, 1_000]);
  return {
    name: `s${index}`,
    route,
    kind: random.pick(["polls", "told"]),
    isFifo,
    firstHoldMs: random.pick([3_000, 9_000, 30_000]),
    holdMs: random.pick([3_000, 9_000, 30_000]),
    latencyMs: random.pick([0, 3, 40]),
    // What nobody can keep would stand in the way of its group, and of less urgent sources, for ever.
    hasDeadLetters: isFifo || !isLast || random.chance(0.5),
    counts: random.pick(["receipts", "deliveries", "nothing"]),
    weight: random.between(1, 5),
    retry: {
      attempts: random.between(1, 4),
      backoffMs,
      maxBackoffMs: Math.max(backoffMs, random.pick([0, 2_000, 8_000])),
      ...(random.chance(0.2) ? { delayMs: random.between(0, 3_000) } : {}),
      ...(random.chance(0.3) ? { maxAgeMs: random.pick([5_000, 30_000]) } : {}),
    },
    deadLetter,
  };
}

function drawKeys(random: Random): KeysPlan {
  return {
    leaseMs: random.pick([3_000, 30_000]),
    waiting: random.pick([0, 1, 3, 100]),
    waitMs: random.pick([500, 5_000, 60_000]),
    awayMs: random.pick([1_000, 3_000]),
  };
}

function drawScript(random: Random, plan: Omit<Plan, "script">): readonly Step[] {
  const steps: Step[] = [];
  const isTroubled = random.chance(0.6);
  const mayBeHarsh = random.chance(0.3);
  const isStopped = random.chance(0.4);
  const keys = random.between(1, 5);
  let ids = 0;
  const put = (): void => {
    const source = random.pick(plan.sources);
    const hasKey = plan.keyInContent || source.isFifo || random.chance(0.8);
    const key = hasKey ? `k${random.between(1, keys)}` : undefined;
    const isBad = plan.transformMs !== undefined && random.chance(0.1);
    ids += 1;
    const id = `m${ids}${isBad ? "!" : ""}`;
    steps.push({ step: "put", source: source.name, id, key, behaviours: drawBehaviours(random) });
  };
  /** Some wait for a key, some for a slot, some have just arrived, and then it is stopped. */
  const drawCrowdedStop = (): void => {
    if (plan.keys !== undefined) {
      const key = `k${random.between(1, keys)}`;
      steps.push({ step: "hold-key", key, ms: random.pick([300, 30_000]) }, { step: "pass", ms: 1 });
      ids += 1;
      const behaviours = drawBehaviours(random);
      steps.push({ step: "put", source: random.pick(plan.sources).name, id: `m${ids}`, key, behaviours });
      steps.push({ step: "pass", ms: random.pick([1, 100]) });
    }
    for (let count = random.between(0, 4); count > 0; count -= 1) put();
    steps.push({ step: "pass", ms: random.pick([0, 1, 20, 400]) });
    steps.push({ step: "restart", graceMs: random.pick([0, 500, 20_000]), hurryMs: undefined });
  };
  for (let index = random.between(6, 30); index > 0; index -= 1) {
    for (let burst = random.pick([1, 1, 2, 5]); burst > 0; burst -= 1) put();
    if (random.chance(0.7)) steps.push({ step: "pass", ms: random.pick([1, 20, 300, 2_000, 15_000]) });
    if (isTroubled && random.chance(0.3)) steps.push(drawFault(random, plan, mayBeHarsh));
    if (isTroubled && plan.keys !== undefined && random.chance(0.1))
      steps.push({ step: "keys-away", ms: random.pick([50, 400, 4_000, 12_000]) });
    if (plan.keys !== undefined && random.chance(0.15))
      steps.push({ step: "hold-key", key: `k${random.between(1, keys)}`, ms: random.pick([100, 2_000, 10_000]) });
    if (isStopped && random.chance(0.1)) drawCrowdedStop();
    if (isStopped && random.chance(0.08)) {
      const hurryMs = random.chance(0.3) ? random.between(0, 3_000) : undefined;
      steps.push({ step: "restart", graceMs: random.pick([0, 500, 20_000]), hurryMs });
    }
    if (isStopped && random.chance(0.08)) steps.push({ step: "reload", concurrency: random.between(1, 4) });
  }
  return steps;
}

function drawBehaviours(random: Random): readonly Behaviour[] {
  const ms = (): number => random.pick([0, 1, 50, 400, 4_000, 12_000]);
  if (random.chance(0.06)) return [{ does: "fails", ms: ms() }];
  const behaviours: Behaviour[] = [];
  while (random.chance(0.35)) {
    const does = random.pick(["fails", "fails", "fails", "later", "refuses", "ignores", "deaf"] as const);
    behaviours.push({ does, ms: ms() });
  }
  return [...behaviours, { does: "ends", ms: ms() }];
}

/** Gentle ones pass by unnoticed but for the trouble; harsh ones may cost a message its hold. */
function drawFault(random: Random, plan: Omit<Plan, "script">, mayBeHarsh: boolean): Step {
  const source = random.pick(plan.sources).name;
  const operation = random.pick(["receive", "receive", "hide", "remove", "remove", "copy"] as const);
  if (mayBeHarsh && random.chance(0.5)) {
    const fault = random.pick(["refused", "slow", "hangs"] as const);
    return { step: "fault", source, operation, fault, times: 1_000, ms: random.pick([1_000, 8_000, 40_000]) };
  }
  const fault = operation === "remove" ? random.pick(["refused", "unanswered"] as const) : "refused";
  return { step: "fault", source, operation, fault, times: random.between(1, 2), ms: 60_000 };
}

/** Whether it may cost a message its hold, or show it twice. */
export function isHarsh(step: Step): boolean {
  return step.step === "fault" && step.times > 2;
}
