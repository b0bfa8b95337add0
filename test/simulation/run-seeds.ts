import { inspect } from "node:util";
import { check, type Statistics } from "./checker/check.ts";
import type { Violation } from "./checker/violation.ts";
import type { MakePlant } from "./planted/plant.ts";
import { traceHash, traceLine, traceOfKey } from "./trace.ts";
import { untilQuiet } from "./turns.ts";
import { World } from "./world.ts";

export interface Failure {
  readonly seed: number;
  readonly violations: readonly Violation[];
  /** The trace of the key that the first violation names. */
  readonly trace: readonly string[];
}

export interface SeedResult {
  readonly seed: number;
  readonly events: number;
  readonly statistics: Statistics;
  readonly failure: Failure | undefined;
}

/**
 * Runs some worlds side by side. They share nothing but the turns of the event loop, of which one per event and
 * world would cost more than the work itself.
 */
export async function runSeeds(seeds: readonly number[], makePlant?: MakePlant): Promise<SeedResult[]> {
  const worlds = seeds.map((seed) => new World(seed, makePlant));
  await runToTheEnd(worlds);
  const results: SeedResult[] = [];
  for (const world of worlds) results.push(await judge(world));
  return results;
}

/** The whole trace of one seed, and its hash. */
export async function traceSeed(
  seed: number,
  makePlant?: MakePlant,
): Promise<{ lines: string[]; hash: string; result: SeedResult }> {
  const world = new World(seed, makePlant);
  await runToTheEnd([world]);
  const { happenings } = world.history;
  return { lines: happenings.map(traceLine), hash: traceHash(happenings), result: await judge(world) };
}

async function runToTheEnd(worlds: readonly World[]): Promise<void> {
  let going = worlds.filter((world) => !world.over);
  while (going.length > 0) {
    for (const world of going) world.step();
    await untilQuiet();
    if (going.some((world) => world.over)) going = going.filter((world) => !world.over);
  }
}

async function judge(world: World): Promise<SeedResult> {
  const { seed, events, settings } = world;
  const { happenings } = world.history;
  const last = await world.conclude();
  const { violations: found, statistics } = check(settings, happenings, last);
  const violations = [...found, ...surprises(world)];
  const [first] = violations;
  const failure = first === undefined ? undefined : { seed, violations, trace: traceOfKey(happenings, first.key) };
  return { seed, events, statistics, failure };
}

function surprises({ surprise, time }: World): Violation[] {
  if (surprise === undefined) return [];
  return [{ guarantee: "surprise", at: time.now, key: undefined, says: inspect(surprise) }];
}
