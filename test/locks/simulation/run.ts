import { untilQuiet } from "../../simulation/turns.ts";
import { check, type Violation } from "./checker.ts";
import { type Happening, traceLine } from "./history.ts";
import type { MakePlant } from "./planted.ts";
import { World } from "./world.ts";

export interface SeedResult {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly history: readonly Happening[];
}

/** Worlds that run side by side share nothing but the turns of the event loop. */
export async function runSeeds(seeds: readonly number[], makePlant?: MakePlant): Promise<readonly SeedResult[]> {
  const worlds = seeds.map((seed) => new World(seed, makePlant));
  let going = worlds;
  while (going.length > 0) {
    for (const world of going) world.step();
    await untilQuiet();
    if (going.some(({ isOver }) => isOver)) going = going.filter(({ isOver }) => !isOver);
  }
  return worlds.map(({ seed, settings, settledAt, history }) => ({
    seed,
    history,
    violations: check(settings, settledAt, history),
  }));
}

/** Enough to see what led to it. */
const LAST_LINES = 60;

export function describeFailure({ seed, violations, history }: SeedResult): string {
  const [first] = violations;
  const before = history.filter(({ at }) => at <= (first?.at ?? Infinity));
  return [
    `Seed ${seed} breaks "${first?.promise ?? "nothing"}" at ${first?.at.toFixed(2) ?? 0} ms: ${first?.says ?? ""}`,
    ...before.slice(-LAST_LINES).map((happening) => `  ${traceLine(happening)}`),
    `Reproduce: node test/locks/simulation/main.ts --seed ${seed}`,
  ].join("\n");
}
