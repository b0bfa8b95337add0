import type { SourceScene } from "./scene.ts";
import type { SourceNeed } from "./target.ts";

/** What a source promises, in one word each; `docs/relay/writing-a-source.md` says it in sentences. */
export type SourcePromise = "received" | "kept" | "settled" | "ordered" | "closed";

export interface SourceCase {
  readonly promise: SourcePromise;
  /** Unique in the suite; a skip names it. */
  readonly name: string;
  readonly needs: readonly SourceNeed[];
  readonly alone: boolean;
  run(scene: SourceScene): Promise<void>;
}

type Runs = Readonly<Record<string, (scene: SourceScene) => Promise<void>>>;

export function sourceCasesOf(promise: SourcePromise, runs: Runs, needs: readonly SourceNeed[] = []): SourceCase[] {
  return Object.entries(runs).map(([name, run]) => ({ promise, name, needs, alone: false, run }));
}
