import type { Scene } from "./scene.ts";

/** The promises of Baton, by their numbers in the documentation. */
export type Guarantee = "G1" | "G2" | "G3" | "G4" | "G5" | "G6" | "G7" | "G8" | "G9" | "G10" | "G11";

export interface ConformanceCase {
  readonly guarantee: Guarantee;
  /** Unique in the suite; a skip names it. */
  readonly name: string;
  /** The case stops and starts the store, so it runs while no other case does. */
  readonly needsRestart: boolean;
  run(scene: Scene): Promise<void>;
}

type Runs = Readonly<Record<string, (scene: Scene) => Promise<void>>>;

export function casesOf(guarantee: Guarantee, runs: Runs, needsRestart = false): ConformanceCase[] {
  return Object.entries(runs).map(([name, run]) => ({ guarantee, name, needsRestart, run }));
}

export function restartCasesOf(guarantee: Guarantee, runs: Runs): ConformanceCase[] {
  return casesOf(guarantee, runs, true);
}
