/** Finds the flaws that could be planted, and draws some of them by a seed: evenly over kinds, one per line at most. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../../test/kit/random.ts";
import type { Compiler } from "./compiler.ts";
import { type Mutant, mutantOf, planted } from "./mutant.ts";
import { statementFlaws } from "./statement-flaws.ts";
import type { Target } from "./targets.ts";
import { typescriptFlaws } from "./typescript-flaws.ts";

export interface Drawn {
  readonly mutants: readonly Mutant[];
  /** How many there were to draw from. */
  readonly possible: number;
  /** Drawn, and refused by the compiler. */
  readonly refused: number;
}

export function draw(root: string, targets: readonly Target[], compiler: Compiler, seed: number, most: number): Drawn {
  const possible = targets.flatMap((target) => flawsOf(root, target, compiler));
  const random = new Random(seed);
  const kinds = Map.groupBy(possible, ({ kind }) => kind);
  const mutants: Mutant[] = [];
  const lines = new Set<string>();
  let refused = 0;
  while (mutants.length < most && kinds.size > 0) {
    const mutant = take(kinds, random);
    const line = `${mutant.file}:${mutant.line}`;
    if (lines.has(line)) continue;
    if (compiler.refusal(mutant.file, planted(textOf(root, mutant.file), mutant)) !== undefined) {
      refused += 1;
      continue;
    }
    lines.add(line);
    mutants.push(mutant);
  }
  return { mutants, possible: possible.length, refused };
}

function flawsOf(root: string, { file, lines }: Target, compiler: Compiler): readonly Mutant[] {
  const source = compiler.parse(file);
  const text = textOf(root, file);
  return [...typescriptFlaws(source), ...statementFlaws(source)]
    .map((edit) => mutantOf(file, text, edit))
    .filter((mutant) => lines === undefined || lines.has(mutant.line));
}

/** A kind by the root of how many there are of it: the rare ones come too, and the common ones more often. */
function take(kinds: Map<string, Mutant[]>, random: Random): Mutant {
  const weights = Array.from(kinds, ([kind, { length }]) => ({ kind, weight: Math.sqrt(length) }));
  let rest = random.next() * weights.reduce((sum, { weight }) => sum + weight, 0);
  const { kind = "" } = weights.find(({ weight }) => (rest -= weight) < 0) ?? weights.at(-1) ?? {};
  const some = kinds.get(kind) ?? [];
  const [mutant] = some.splice(random.between(0, some.length - 1), 1);
  if (some.length === 0) kinds.delete(kind);
  if (mutant === undefined) throw new Error(`There is no flaw of the kind "${kind}" left.`);
  return mutant;
}

function textOf(root: string, file: string): string {
  return readFileSync(join(root, file), "utf8");
}
