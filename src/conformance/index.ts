export type { ConformanceCase, Guarantee } from "./case.ts";
export { cases } from "./cases.ts";
export { NotConforming } from "./expect.ts";
export {
  type ConformanceOptions,
  type ConformanceResult,
  type ConformanceSummary,
  runCase,
  runConformance,
} from "./run.ts";
export { type ClaimWish, Scene, type Wish } from "./scene.ts";
export type { ConformanceTarget } from "./target.ts";
