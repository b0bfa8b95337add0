import "../domain/node-version.ts";
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
export type { LockCase, LockPromise, Need } from "./locks/case.ts";
export { lockCases } from "./locks/cases.ts";
export { Contender, type LockWish, type Waiting } from "./locks/contender.ts";
export {
  type LocksConformanceOptions,
  type LocksConformanceResult,
  type LocksConformanceSummary,
  runLockCase,
  runLocksConformance,
} from "./locks/run.ts";
export { type ContenderWish, LockScene } from "./locks/scene.ts";
export type { LocksTarget } from "./locks/target.ts";
export type { WakeCase, WakeNeed, WakePromise } from "./wake/case.ts";
export { wakeCases } from "./wake/cases.ts";
export {
  runWakeCase,
  runWakeConformance,
  type WakeConformanceOptions,
  type WakeConformanceResult,
  type WakeConformanceSummary,
} from "./wake/run.ts";
export { Ear, WakeScene } from "./wake/scene.ts";
export type { WakeTarget } from "./wake/target.ts";
export type { SourceCase, SourcePromise } from "./relay/case.ts";
export { sourceCases } from "./relay/cases.ts";
export {
  runSourceCase,
  runSourceConformance,
  type SourceConformanceOptions,
  type SourceConformanceResult,
  type SourceConformanceSummary,
} from "./relay/run.ts";
export { SourceScene, type Stage } from "./relay/scene.ts";
export type { SentMessage, SourceNeed, SourceQueue, SourceTarget } from "./relay/target.ts";
