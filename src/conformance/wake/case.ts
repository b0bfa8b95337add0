import type { WakeScene } from "./scene.ts";

/** What a carrier of wakes promises, in one word each; `docs/wake.md` says it in sentences. */
export type WakePromise = "heard" | "budgeted" | "shared" | "lasting";

/** What a target may be unable to do. */
export type WakeNeed = "hints" | "interrupt" | "age";

export interface WakeCase {
  readonly promise: WakePromise;
  /** Unique in the suite; a skip names it. */
  readonly name: string;
  readonly needs: readonly WakeNeed[];
  /** Runs while no other case does: it breaks connections. */
  readonly alone: boolean;
  run(scene: WakeScene): Promise<void>;
}

type Runs = Readonly<Record<string, (scene: WakeScene) => Promise<void>>>;

export function wakeCasesOf(promise: WakePromise, runs: Runs, needs: readonly WakeNeed[] = []): WakeCase[] {
  const alone = needs.includes("interrupt") || needs.includes("age");
  return Object.entries(runs).map(([name, run]) => ({ promise, name, needs, alone, run }));
}
