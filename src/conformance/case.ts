import type { Scene } from "./scene.ts";

/** The promises of Baton, by their numbers in the documentation. */
export type Guarantee = "G1" | "G2" | "G3" | "G4" | "G5" | "G6" | "G7" | "G8" | "G9" | "G10" | "G11";

export interface ConformanceCase {
  readonly guarantee: Guarantee;
  /** Unique in the suite; a skip names it. */
  readonly name: string;
  /** The case stops and starts the store. */
  readonly needsRestart: boolean;
  /** Runs while no other case does: it restarts the store, or it measures time. */
  readonly alone: boolean;
  run(scene: Scene): Promise<void>;
}

type Runs = Readonly<Record<string, (scene: Scene) => Promise<void>>>;

export function casesOf(guarantee: Guarantee, runs: Runs): ConformanceCase[] {
  return Object.entries(runs).map(([name, run]) => ({ guarantee, name, needsRestart: false, alone: false, run }));
}

export function timedCasesOf(guarantee: Guarantee, runs: Runs): ConformanceCase[] {
  return casesOf(guarantee, runs).map((one) => Object.assign(one, { alone: true }));
}

export function restartCasesOf(guarantee: Guarantee, runs: Runs): ConformanceCase[] {
  return casesOf(guarantee, runs).map((one) => Object.assign(one, { alone: true, needsRestart: true }));
}
