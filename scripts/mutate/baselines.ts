/**
 * What each test file does without a flaw: does it pass, how long does it take, which places does it run. Measured when it is
 * first asked for. Which places of a file it runs holds until that file or the test changes; that it passes holds until
 * any file changes that it can reach.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Coverage, isCovered } from "./coverage.ts";
import type { ImportGraph } from "./import-graph.ts";
import type { Mutant } from "./mutant.ts";
import { runCovered } from "./test-run.ts";
import type { Workspace } from "./workspace.ts";

export interface Baseline {
  /** Of all files that the test can reach. */
  readonly fingerprint: string;
  /** Of the test file, and of each source that it ran. */
  readonly files: Readonly<Record<string, string>>;
  readonly ms: number;
  readonly coverage: Coverage;
}

/** The same as in scripts/test.ts: a file that takes longer hangs. */
const LONGEST_MS = 420_000;

export class Baselines {
  /** Test files that fail without a flaw, with the reason: they can tell nothing. */
  readonly failed: Map<string, string> = new Map();
  readonly #file: string;
  readonly #graph: ImportGraph;
  readonly #known: Map<string, Baseline>;
  readonly #asked = new Map<string, Promise<Baseline | undefined>>();

  constructor(root: string, graph: ImportGraph) {
    this.#file = join(root, ".cache/mutate/baselines.json");
    this.#graph = graph;
    this.#known = read(this.#file);
  }

  /** In seconds, if it is known. */
  secondsOf(test: string): number | undefined {
    const known = this.#known.get(test);
    return known === undefined ? undefined : known.ms / 1_000;
  }

  /** As far as it tells which places of the source run, and for how long. Undefined: the test fails without a flaw. */
  async of(test: string, source: string, workspace: Workspace): Promise<Baseline | undefined> {
    const known = this.#known.get(test);
    const isSameTest = known?.files[test] === this.#graph.fingerprintOfFile(test);
    if (known !== undefined && isSameTest && this.#isAsMeasured(known, source)) return known;
    return await this.ofToday(test, workspace);
  }

  /** As the tree is now. Two lanes that ask for the same wait for one measurement. */
  async ofToday(test: string, workspace: Workspace): Promise<Baseline | undefined> {
    const known = this.#known.get(test);
    if (known?.fingerprint === this.#graph.fingerprint(test)) return known;
    const asked = this.#asked.get(test) ?? this.#measure(test, workspace);
    this.#asked.set(test, asked);
    return await asked;
  }

  /** Of a source that the test did not run, nothing is kept. */
  #isAsMeasured({ files, coverage }: Baseline, file: string): boolean {
    return !(file in coverage) || files[file] === this.#graph.fingerprintOfFile(file);
  }

  async #measure(test: string, workspace: Workspace): Promise<Baseline | undefined> {
    const { ms, failure, coverage } = await runCovered(workspace, test, LONGEST_MS);
    workspace.sweep();
    if (failure !== undefined) {
      this.failed.set(test, failure);
      return undefined;
    }
    const baseline = {
      fingerprint: this.#graph.fingerprint(test),
      files: Object.fromEntries(
        [test, ...Object.keys(coverage)].map((name) => [name, this.#graph.fingerprintOfFile(name)]),
      ),
      ms,
      coverage,
    };
    this.#known.set(test, baseline);
    mkdirSync(dirname(this.#file), { recursive: true });
    // Another run may have added to it meanwhile.
    const all = read(this.#file).set(test, baseline);
    writeFileSync(this.#file, JSON.stringify(Object.fromEntries(all)));
    return baseline;
  }
}

/** Whether some process or thread of the test runs the place. */
export function reaches({ coverage }: Baseline, { file, start }: Mutant): boolean {
  return isCovered(coverage[file] ?? [], start);
}

function read(file: string): Map<string, Baseline> {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this class has written it
    const all = JSON.parse(readFileSync(file, "utf8")) as Record<string, Baseline>;
    return new Map(Object.entries(all).filter(([, { files }]) => typeof files === "object"));
  } catch {
    return new Map();
  }
}
