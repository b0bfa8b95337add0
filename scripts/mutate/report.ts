/** What is printed: a line per flaw as it is tried, the survivors, and a table by folder. */
import { describe } from "./mutant.ts";
import { roomOf } from "./targets.ts";
import { isKilled, type Outcome } from "./trial.ts";

/** Test files of each sort below a survivor. */
const MOST_NAMED = 6;

export function progressLine(outcome: Outcome): string {
  const { mutant, killedBy, ms } = outcome;
  const by = killedBy === undefined ? "" : `  by ${killedBy.test}: ${killedBy.failure}`;
  return `${wordOf(outcome)}  ${(ms / 1_000).toFixed(0)} s  ${mutant.file}:${mutant.line}  ${mutant.kind}${by}`;
}

function wordOf(outcome: Outcome): string {
  const killed = isKilled(outcome);
  if (killed === undefined) return "UNKNOWN";
  if (killed) return "killed";
  return outcome.passed.length === 0 ? "NO TEST" : "SURVIVED";
}

export function survivorText({ mutant, passed, left, failing }: Outcome): string {
  const lists = [
    [passed.length === 0 ? "no test runs this place" : "passed", passed],
    ["no time for", left],
    ["failing without the flaw", failing],
  ] as const;
  return [
    describe(mutant),
    ...lists
      .filter(([title, tests]) => tests.length > 0 || title.startsWith("no test"))
      .map(([title, tests]) => (tests.length === 0 ? `    ${title}` : `    ${title}: ${firstOf(tests)}`)),
  ].join("\n");
}

function firstOf(tests: readonly string[]): string {
  const more = tests.length - MOST_NAMED;
  return tests.slice(0, MOST_NAMED).join(", ") + (more > 0 ? `, and ${more} more` : "");
}

/** In Markdown, for reading in a terminal as well. What could not be judged is not in it. */
export function table(all: readonly Outcome[]): string {
  const outcomes = all.filter((outcome) => isKilled(outcome) !== undefined);
  const rooms = Map.groupBy(outcomes, ({ mutant }) => roomOf(mutant.file));
  const rows = Array.from(rooms, ([room, some]) => row(`\`${room}\``, some));
  const cells = [["folder", "flaws", "killed", "kill rate"], ...rows.toSorted(byName), row("all", outcomes)];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((line) => line[column]?.length ?? 0)));
  const [head = "", ...body] = cells.map(
    (line) =>
      `| ${line.map((cell, at) => (at === 0 ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join(" | ")} |`,
  );
  const rule = `| ${widths.map((width, at) => (at === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [head, rule, ...body].join("\n");
}

function row(name: string, outcomes: readonly Outcome[]): readonly string[] {
  const killed = outcomes.filter(({ killedBy }) => killedBy !== undefined).length;
  const rate = outcomes.length === 0 ? "" : `${((killed / outcomes.length) * 100).toFixed(0)} %`;
  return [name, String(outcomes.length), String(killed), rate];
}

function byName([a = ""]: readonly string[], [b = ""]: readonly string[]): number {
  return a < b ? -1 : 1;
}
