import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../../kit/random.ts";
import { again, type Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";
import { countImmediates, untilQuiet } from "../../simulation/turns.ts";
import { countIntervals, inWorld } from "./intervals.ts";

export interface RandomWorld {
  readonly isOver: boolean;
  readonly problems: readonly string[];
  step(): void;
}

export interface WorldKind<Plan extends { readonly deeds: readonly unknown[] }> {
  /** Begun when the test is. */
  readonly seeds: () => Seeds;
  readonly draw: (random: Random) => Plan;
  readonly make: (plan: Plan, intervals: ReadonlySet<unknown>) => RandomWorld;
  readonly describe: (plan: Plan) => string;
}

/** Worlds side by side share the turns of the event loop. */
const CHUNK = 20;

/** Plays one plan for each seed on virtual time. One that fails is shortened, deed by deed. */
export function addWorldTest<Plan extends { readonly deeds: readonly unknown[] }>(
  title: string,
  { seeds: begin, draw, make, describe }: WorldKind<Plan>,
): void {
  countImmediates();
  countIntervals();

  const play = async (plans: readonly Plan[]): Promise<readonly (readonly string[])[]> => {
    const worlds = plans.map((plan) => inWorld((intervals) => make(plan, intervals)));
    let going = worlds;
    while (going.length > 0) {
      for (const world of going) world.step();
      await untilQuiet();
      going = going.filter(({ isOver }) => !isOver);
    }
    return worlds.map(({ problems }) => problems);
  };

  const explain = async (seed: number, plan: Plan, found: readonly string[]): Promise<string> => {
    const deeds = await shrink(plan.deeds, async (rest) => {
      const [problems = []] = await play([{ ...plan, deeds: rest }]);
      return problems.length > 0;
    });
    const short = { ...plan, deeds };
    const [problems = []] = await play([short]);
    return `Seed ${seed}: ${found.join("\n  ")}\n${again(seed)}. Shortened: ${problems.join("\n  ")}\n${describe(short)}`;
  };

  test(title, { timeout: seedTimeoutMs(240_000) }, async (context) => {
    const seeds = begin();
    let chunk: number[] = [];
    const playChunk = async (): Promise<void> => {
      const plans = chunk.map((seed) => ({ seed, plan: draw(new Random(seed)) }));
      chunk = [];
      const found = await play(plans.map(({ plan }) => plan));
      for (const [index, { seed, plan }] of plans.entries()) {
        const problems = found[index] ?? [];
        if (problems.length > 0) assert.fail(await explain(seed, plan, problems));
      }
    };
    for (const seed of seeds) {
      chunk.push(seed);
      if (chunk.length === CHUNK) await playChunk();
    }
    await playChunk();
    seeds.tell(context, title);
  });
}
