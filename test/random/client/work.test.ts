import { addWorldTest } from "./play-worlds.ts";
import { describePlan, drawPlan } from "./work/plan.ts";
import { WorkWorld } from "./work/world.ts";
import { type SeedBounds, Seeds } from "../../kit/seeds.ts";

const BOUNDS: SeedBounds = { seeds: 1_000, longestMs: 4_500 };

addWorldTest("queues and workers keep their promises in all combinations of their options", {
  seeds: () => new Seeds(BOUNDS),
  draw: drawPlan,
  make: (plan, intervals) => new WorkWorld(plan, intervals),
  describe: describePlan,
});
