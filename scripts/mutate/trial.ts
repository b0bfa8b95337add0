/** One flaw against the tests that can catch it: the likeliest and quickest first, until one fails or the time is spent. */
import { basename } from "node:path";
import { type Baselines, reaches } from "./baselines.ts";
import type { ImportGraph } from "./import-graph.ts";
import type { Mutant } from "./mutant.ts";
import { runTest, type TestRun } from "./test-run.ts";
import type { Workspace } from "./workspace.ts";

export interface Outcome {
  readonly mutant: Mutant;
  readonly killedBy?: { readonly test: string; readonly failure: string };
  /** Test files that ran the place and passed all the same. */
  readonly passed: readonly string[];
  /** Others that may run it, for which there was no time. */
  readonly left: readonly string[];
  /** Others that may run it, and fail without the flaw. */
  readonly failing: readonly string[];
  readonly ms: number;
}

/** Undefined: the tests that could say it fail without the flaw. */
export function isKilled({ killedBy, passed, failing }: Outcome): boolean | undefined {
  if (killedBy !== undefined) return true;
  return passed.length === 0 && failing.length > 0 ? undefined : false;
}

/** So many of the nearest test files are asked whether they run a place. */
const NEAREST = 30;

/** A busy machine, and tests whose work a flaw makes longer. */
const SLOWER = 4;
const LATER_MS = 15_000;
/** A limit that would be longer now by more than this was too short. */
const LATE_SHARE = 1.2;

export interface Bench {
  readonly graph: ImportGraph;
  readonly baselines: Baselines;
  readonly workspace: Workspace;
  /** What the tests of one flaw may take, by their times without it. */
  readonly budgetMs: number;
  /** Fires when the program is to end: what tests say from then on is not true. */
  readonly signal: AbortSignal;
}

export async function tryMutant(mutant: Mutant, bench: Bench): Promise<Outcome> {
  const { baselines, workspace, budgetMs, signal } = bench;
  const startedAt = performance.now();
  const passed: string[] = [];
  const left: string[] = [];
  const failing: string[] = [];
  let spentMs = 0;
  for (const test of nearest(mutant.file, bench)) {
    if (signal.aborted) break;
    if (spentMs >= budgetMs) {
      left.push(test);
      continue;
    }
    const baseline = await baselines.of(test, mutant.file, workspace);
    if (baseline === undefined) {
      failing.push(test);
      continue;
    }
    if (!reaches(baseline, mutant)) continue;
    const failure = await failureWith(mutant, test, baseline.ms, bench);
    if (failure === undefined) {
      passed.push(test);
      spentMs += baseline.ms;
      // It may fail because of what has changed since it was measured.
    } else if ((await baselines.ofToday(test, workspace)) === undefined) failing.push(test);
    else {
      return { mutant, killedBy: { test, failure }, passed, left, failing, ms: performance.now() - startedAt };
    }
  }
  return { mutant, passed, left, failing, ms: performance.now() - startedAt };
}

async function failureWith(
  mutant: Mutant,
  test: string,
  usualMs: number,
  { workspace }: Bench,
): Promise<string | undefined> {
  const first = await runFlawed(mutant, test, limitOf(usualMs), workspace);
  if (!first.isLate) return first.failure;
  // The machine may be busier than when the test was measured.
  const now = await runTest(workspace, test, limitOf(first.ms));
  workspace.sweep();
  if (limitOf(now.ms) < first.ms * LATE_SHARE) return first.failure;
  return (await runFlawed(mutant, test, limitOf(now.ms), workspace)).failure;
}

async function runFlawed(mutant: Mutant, test: string, limitMs: number, workspace: Workspace): Promise<TestRun> {
  using _ = workspace.plant(mutant);
  const run = await runTest(workspace, test, limitMs);
  workspace.sweep();
  return run;
}

function limitOf(usualMs: number): number {
  return usualMs * SLOWER + LATER_MS;
}

/** The points of a test file: fewer come first. */
const NAMESAKE = -20;
const OWN_AND_BROAD = -10;
const BROAD = 10;
const OTHER = 30;
const FOREIGN = 60;
const PER_IMPORT = 3;
const PER_DOUBLING = 4;
const UNKNOWN_SECONDS = 5;

/** Tests of one of these play little of another, and take long. */
const STORES = /nats|jetstream|postgres|redis|valkey|sqlite|consul|sqs|pubsub/;

/** Those of the same folder or engine, then those that play many histories, then the others; near and quick ones first. */
function nearest(source: string, { graph, baselines }: Bench): readonly string[] {
  const [, folder = "", engine = ""] = source.split("/");
  const own = folder === "engines" ? engine : folder;
  const name = basename(source, ".ts");
  const kinship = (test: string): number => {
    const isBroad = graph.isBroad(test);
    if (test.includes(own)) return test.includes(`/${name}.`) ? NAMESAKE : isBroad ? OWN_AND_BROAD : 0;
    return STORES.test(test) ? FOREIGN : isBroad ? BROAD : OTHER;
  };
  return graph.tests
    .flatMap((test) => {
      const distance = graph.distance(test, source);
      if (distance === undefined) return [];
      const doublings = Math.log2(1 + (baselines.secondsOf(test) ?? UNKNOWN_SECONDS));
      return [{ test, points: kinship(test) + distance * PER_IMPORT + doublings * PER_DOUBLING }];
    })
    .toSorted((a, b) => a.points - b.points)
    .slice(0, NEAREST)
    .map(({ test }) => test);
}
