/**
 * Which stretches of the sources a test file ran, in all its processes and threads, by what V8 writes at their ends. Types are
 * stripped into blanks, so places in the code that ran are places in the source.
 */
import { globSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** From the root; beginnings and ends in turn. */
export type Coverage = Readonly<Record<string, readonly number[]>>;

interface Script {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

/** A process that was killed while it wrote leaves half a file. */
function scriptsOf(file: string): readonly Script[] {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- V8 has written it
    return (JSON.parse(readFileSync(file, "utf8")) as { readonly result: readonly Script[] }).result;
  } catch {
    return [];
  }
}

export function readCoverage(folder: string, root: string): Coverage {
  const sources = pathToFileURL(join(root, "src/")).href;
  const ran = new Map<string, Uint8Array>();
  for (const name of globSync("*.json", { cwd: folder })) {
    for (const { url, functions } of scriptsOf(join(folder, name))) {
      if (!url.startsWith(sources)) continue;
      const file = relative(root, fileURLToPath(url));
      const own = paint(
        statSync(join(root, file)).size,
        functions.flatMap(({ ranges }) => ranges),
      );
      const before = ran.get(file);
      ran.set(file, before === undefined ? own : own.map((value, at) => value | (before[at] ?? 0)));
    }
  }
  return Object.fromEntries(Array.from(ran, ([file, painted]) => [file, stretches(painted)]));
}

export function isCovered(stretchesOfFile: readonly number[], place: number): boolean {
  return stretchesOfFile.some(
    (start, index) => index % 2 === 0 && start <= place && place < (stretchesOfFile[index + 1] ?? 0),
  );
}

/** The smaller range says it more exactly. */
function paint(length: number, ranges: readonly Range[]): Uint8Array {
  const painted = new Uint8Array(length);
  const width = ({ startOffset, endOffset }: Range): number => endOffset - startOffset;
  for (const range of ranges.toSorted((a, b) => width(b) - width(a))) {
    painted.fill(range.count > 0 ? 1 : 0, range.startOffset, range.endOffset);
  }
  return painted;
}

function stretches(painted: Uint8Array): readonly number[] {
  const found: number[] = [];
  for (let at = 0; at <= painted.length; at += 1) {
    if ((painted[at] ?? 0) !== (painted[at - 1] ?? 0)) found.push(at);
  }
  return found;
}
