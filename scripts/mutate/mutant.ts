/** A flaw that could be planted: a stretch of one file, and what stands there instead. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** What is done to the code, in two or three words. Flaws are drawn evenly over these. */
  readonly kind: string;
}

export interface Mutant extends Edit {
  /** From the root, with slashes. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  readonly before: string;
  readonly after: string;
}

/** What is shown of a line with a flaw, on each side of the arrow. */
const SHOWN = 150;

export function mutantOf(file: string, source: string, edit: Edit): Mutant {
  const line = source.slice(0, edit.start).split("\n").length;
  const from = source.lastIndexOf("\n", edit.start - 1) + 1;
  const newline = source.indexOf("\n", edit.end);
  const to = newline === -1 ? source.length : newline;
  const [prefix, suffix] = [source.slice(from, edit.start), source.slice(edit.end, to)];
  return {
    ...edit,
    file,
    line,
    before: oneLine(`${prefix}${source.slice(edit.start, edit.end)}${suffix}`),
    after: oneLine(`${prefix}${edit.text}${suffix}`),
  };
}

export function planted(source: string, { start, end, text }: Edit): string {
  return source.slice(0, start) + text + source.slice(end);
}

export function describe({ file, line, kind, before, after }: Mutant): string {
  return `${file}:${line}  ${kind}\n    ${before}\n  → ${after}`;
}

function oneLine(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  if (flat === "") return "(nothing)";
  return flat.length > SHOWN ? `${flat.slice(0, SHOWN)}…` : flat;
}
