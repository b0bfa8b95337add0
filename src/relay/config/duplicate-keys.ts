/**
 * Names that stand twice in one object of a JSON text. JSON.parse takes the last of them without a word; the first may
 * be the one that its writer looks at.
 */
export interface DuplicateKey {
  readonly name: string;
  readonly line: number;
  readonly column: number;
}

/** Texts, and what opens, closes and separates. Numbers and words do not matter here. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gs;

/** @param text JSON that has been parsed without an error */
export function duplicateKeys(text: string): readonly DuplicateKey[] {
  const found: DuplicateKey[] = [];
  /** The names of each open object; undefined for an open list. */
  const open: (Set<string> | undefined)[] = [];
  let mayBeName = false;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    switch (token) {
      case "{":
        open.push(new Set());
        break;
      case "[":
        open.push(undefined);
        break;
      case "}":
      case "]":
        open.pop();
        break;
      default: {
        const names = open.at(-1);
        if (!mayBeName || names === undefined || token.length < 2) break;
        const name = String(JSON.parse(token));
        if (names.has(name)) found.push({ name, ...placeOf(text, index) });
        names.add(name);
      }
    }
    mayBeName = token === "{" || token === ",";
  }
  return found;
}

function placeOf(text: string, index: number): { readonly line: number; readonly column: number } {
  const before = text.slice(0, index).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}
