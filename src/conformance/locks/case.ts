import type { LockScene } from "./scene.ts";

/** What locks promise, in one word each; `docs/locks/` says it in sentences. */
export type LockPromise =
  | "exclusive"
  | "fenced"
  | "asked"
  | "fair"
  | "prompt"
  | "released"
  | "sessions"
  | "lost"
  | "delayed"
  | "retired"
  | "shown"
  | "bounded"
  | "honest"
  | "durable";

/** What a target may be unable to do. `fair` is a limit of the locks themselves. */
export type Need = "crash" | "loseReply" | "restart" | "fair";

export interface LockCase {
  readonly promise: LockPromise;
  /** Unique in the suite; a skip names it. */
  readonly name: string;
  readonly needs: readonly Need[];
  /** Runs while no other case does: it restarts the store, or it measures time. */
  readonly alone: boolean;
  run(scene: LockScene): Promise<void>;
}

type Runs = Readonly<Record<string, (scene: LockScene) => Promise<void>>>;

export function lockCasesOf(promise: LockPromise, runs: Runs, needs: readonly Need[] = []): LockCase[] {
  const alone = promise === "prompt" || needs.includes("restart");
  return Object.entries(runs).map(([name, run]) => ({ promise, name, needs, alone, run }));
}
