/** Plants flaws one after the other, runs what can catch them, and says which ones nothing caught. */
import { Baselines } from "./baselines.ts";
import { Compiler } from "./compiler.ts";
import { draw } from "./draw.ts";
import { ImportGraph } from "./import-graph.ts";
import { describe, type Mutant } from "./mutant.ts";
import { progressLine, survivorText, table } from "./report.ts";
import { roomOf, type Target } from "./targets.ts";
import { endAll } from "./test-run.ts";
import { isKilled, type Outcome, tryMutant } from "./trial.ts";
import { Workspace } from "./workspace.ts";

export interface Settings {
  readonly root: string;
  readonly targets: readonly Target[];
  readonly seed: number;
  /** Flaws in all, or in each folder. */
  readonly most: number;
  readonly perFolder: boolean;
  /** Tests at once. */
  readonly lanes: number;
  readonly budgetSeconds: number;
  /** Only says what would be planted. */
  readonly listOnly: boolean;
  readonly print: (line: string) => void;
}

export async function mutate(settings: Settings): Promise<readonly Outcome[]> {
  const { print, seed, listOnly } = settings;
  const mutants = drawAll(settings);
  if (listOnly || mutants.length === 0) {
    for (const mutant of mutants) print(describe(mutant));
    return [];
  }
  const outcomes = await tryAll(settings, mutants);
  const survivors = outcomes.filter((outcome) => isKilled(outcome) === false);
  if (survivors.length > 0) print(`\nSurvivors, drawn by --seed ${seed}:\n`);
  for (const survivor of survivors) print(`${survivorText(survivor)}\n`);
  const unknown = outcomes.filter((outcome) => isKilled(outcome) === undefined).length;
  if (unknown > 0) print(`${unknown} more flaws could not be judged: the tests for them fail without a flaw.\n`);
  print(table(outcomes));
  return outcomes;
}

function drawAll({ root, targets, seed, most, perFolder, print }: Settings): readonly Mutant[] {
  using compiler = new Compiler(root);
  const groups = perFolder ? [...Map.groupBy(targets, ({ file }) => roomOf(file)).values()] : [targets];
  const drawn = groups.map((group) => draw(root, group, compiler, seed, most));
  const sum = (of: "possible" | "refused"): number => drawn.reduce((total, one) => total + one[of], 0);
  // In turns: a run that is interrupted has something of each.
  const mutants = drawn
    .flatMap((one) => one.mutants.map((mutant, turn) => ({ mutant, turn })))
    .toSorted((a, b) => a.turn - b.turn)
    .map(({ mutant }) => mutant);
  print(
    `${mutants.length} of ${sum("possible")} flaws in ${targets.length} files, drawn by --seed ${seed}; ` +
      `${sum("refused")} more were drawn and the compiler refused them`,
  );
  return mutants;
}

async function tryAll(settings: Settings, mutants: readonly Mutant[]): Promise<readonly Outcome[]> {
  const { root, lanes, budgetSeconds, print } = settings;
  const graph = new ImportGraph(root);
  const baselines = new Baselines(root, graph);
  const outcomes: Outcome[] = [];
  const waiting = [...mutants];
  using stack = new DisposableStack();
  // Then what is known so far is told, and no process and no copy is left behind.
  const interruption = new AbortController();
  const { signal } = interruption;
  const interrupt = (): void => {
    interruption.abort();
    endAll();
  };
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  stack.defer(() => process.off("SIGINT", interrupt).off("SIGTERM", interrupt));
  const lane = async (): Promise<void> => {
    const workspace = stack.use(new Workspace(root));
    const bench = { graph, baselines, workspace, budgetMs: budgetSeconds * 1_000, signal };
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const outcome = await tryMutant(mutant, bench);
      if (signal.aborted) return;
      outcomes.push(outcome);
      print(`${outcomes.length}/${mutants.length} ${progressLine(outcome)}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(lanes, mutants.length) }, lane));
  // An interruption ends tests that were being measured.
  const failed = signal.aborted ? [] : baselines.failed;
  for (const [test, reason] of failed) print(`Left out, for it fails without a flaw: ${test} (${reason})`);
  const places = new Map(mutants.map((mutant, index) => [mutant, index]));
  return outcomes.toSorted((a, b) => (places.get(a.mutant) ?? 0) - (places.get(b.mutant) ?? 0));
}
