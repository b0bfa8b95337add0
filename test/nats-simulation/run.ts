import { untilQuiet } from "../simulation/turns.ts";
import { check, type Statistics, type Violation } from "./checker.ts";
import { traceOfKey } from "./history.ts";
import { drawPlan, type Plan } from "./plan.ts";
import type { PlantedBug } from "./planted.ts";
import { World } from "./world.ts";

export interface Failure {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** Of the key that the first violation names. */
  readonly trace: readonly string[];
}

export interface Result {
  readonly seed: number;
  readonly events: number;
  readonly statistics: Statistics;
  readonly failure: Failure | undefined;
  readonly interfered: number;
}

/** Some worlds side by side: they share nothing but the turns of the event loop. */
export async function runPlans(plans: readonly Plan[], bug?: PlantedBug): Promise<Result[]> {
  const worlds = plans.map((plan) => new World(plan, bug?.make));
  let going = worlds;
  while (going.length > 0) {
    for (const world of going) world.step();
    await untilQuiet();
    if (going.some((world) => world.over)) going = going.filter((world) => !world.over);
  }
  return worlds.map(judge);
}

export async function runSeeds(seeds: readonly number[], bug?: PlantedBug): Promise<Result[]> {
  return await runPlans(seeds.map(drawPlan), bug);
}

/** One seed with its whole story. */
export async function traceSeed(
  seed: number,
  bug?: PlantedBug,
): Promise<{ readonly lines: readonly string[]; readonly result: Result }> {
  const world = new World(drawPlan(seed), bug?.make);
  while (!world.over) {
    world.step();
    await untilQuiet();
  }
  return { lines: traceOfKey(world.history.happenings, undefined), result: judge(world) };
}

function judge(world: World): Result {
  const { happenings } = world.history;
  const { seed } = world.plan;
  const { violations, statistics } = check(world.plan, happenings, world.lastWords());
  const [first] = violations;
  const failure = first === undefined ? undefined : { seed, violations, trace: traceOfKey(happenings, first.key) };
  return { seed, events: world.events, statistics, failure, interfered: world.interfered };
}
