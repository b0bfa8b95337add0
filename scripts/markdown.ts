/** The little of Markdown that the documentation check needs: fenced blocks, links and headings. */
export interface CodeBlock {
  /** First line of the code, counted from 1. */
  readonly line: number;
  readonly language: string;
  /** What follows the language on the opening fence. */
  readonly note: string;
  readonly code: string;
}

export interface Link {
  readonly line: number;
  readonly target: string;
}

export interface Page {
  readonly blocks: readonly CodeBlock[];
  readonly links: readonly Link[];
  /** What `#…` can point to, as GitHub names the headings. */
  readonly anchors: ReadonlySet<string>;
}

const OPENING_FENCE = /^\s*(`{3,}|~{3,})\s*([^\s`]*)\s*([^`]*)$/;
const INLINE_CODE = /(`+)(?!`).*?[^`]\1(?!`)/g;
const INLINE_LINK = /\]\(\s*<?([^\s<>()]+(?:\([^\s<>()]*\))?)>?(?:\s+["'][^"']*["'])?\s*\)/g;
const REFERENCE = /^\s{0,3}\[[^\]]+\]:\s*<?([^\s<>]+)/g;
const HTML_LINK = /\b(?:href|src)="([^"]+)"/g;
const HEADING = /^#{1,6}\s+(.+?)\s*#*$/;

export function readMarkdown(text: string): Page {
  const blocks: CodeBlock[] = [];
  const links: Link[] = [];
  const headings: string[] = [];
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const [, fence, language, note] = OPENING_FENCE.exec(line) ?? [];
    if (fence !== undefined) {
      const end = closingFence(lines, index + 1, fence);
      const code = lines.slice(index + 1, end).join("\n");
      blocks.push({ line: index + 2, language: language ?? "", note: (note ?? "").trim(), code });
      index = end;
      continue;
    }
    const heading = HEADING.exec(line)?.[1];
    if (heading !== undefined) headings.push(heading);
    links.push(...linksOf(line).map((target) => ({ line: index + 1, target })));
  }
  return { blocks, links, anchors: anchorsOf(headings) };
}

/** The line that closes a fence, or the end of the page. */
function closingFence(lines: readonly string[], from: number, fence: string): number {
  const end = lines.findIndex((line, index) => {
    const text = line.trim();
    return index >= from && text.startsWith(fence) && text === fence.charAt(0).repeat(text.length);
  });
  return end === -1 ? lines.length : end;
}

function linksOf(line: string): string[] {
  const prose = line.replaceAll(INLINE_CODE, "");
  return [INLINE_LINK, REFERENCE, HTML_LINK].flatMap((pattern) =>
    Array.from(prose.matchAll(pattern), ([, target]) => target ?? ""),
  );
}

function anchorsOf(headings: readonly string[]): Set<string> {
  const anchors = new Set<string>();
  for (const heading of headings) {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = text.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}
