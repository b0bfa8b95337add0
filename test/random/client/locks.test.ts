import { type SeedBounds, Seeds } from "../../kit/seeds.ts";
import { describePlan, drawPlan } from "./locks/plan.ts";
import { LockWorld } from "./locks/world.ts";
import { addWorldTest } from "./play-worlds.ts";

const BOUNDS: SeedBounds = { seeds: 1_000, longestMs: 4_500 };

addWorldTest("locks, sessions, elections and walks keep their promises in all combinations", {
  seeds: () => new Seeds(BOUNDS),
  draw: drawPlan,
  make: (plan, intervals) => new LockWorld(plan, intervals),
  describe: describePlan,
});
