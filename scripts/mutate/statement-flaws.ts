/** The flaws that can be planted in SQL and Lua. Nothing parses these: one that is no statement any more is found at once. */
import type { SourceFile } from "typescript/unstable/ast";
import type { Edit } from "./mutant.ts";
import { type StatementText, statementTexts } from "./statement-texts.ts";

/** A word or sign, and what it becomes. */
interface Swap {
  readonly find: RegExp;
  readonly to: (found: string) => string;
  readonly kind: string;
}

const either = (one: string, other: string) => (found: string) => (found.trim().toLowerCase() === one ? other : one);

const SQL_SWAPS: readonly Swap[] = [
  { find: /(?<=\s)(<=|>=|<|>)(?=\s)/g, to: (sign) => (sign.length === 2 ? sign.charAt(0) : `${sign}=`), kind: "bound" },
  { find: /(?<=\s)<>(?=\s)/g, to: () => "=", kind: "comparison" },
  {
    find: /\bIS (?:NOT )?NULL\b/g,
    to: (text) => (text.includes("NOT") ? "IS NULL" : "IS NOT NULL"),
    kind: "comparison",
  },
  {
    find: /\b(?:NOT )?EXISTS(?= \()/g,
    to: (text) => (text.includes("NOT") ? "EXISTS" : "NOT EXISTS"),
    kind: "comparison",
  },
  { find: /\b(?:greatest|least)(?=\()/g, to: either("greatest", "least"), kind: "bound" },
  { find: /\b(?:min|max)(?=\()/g, to: either("min", "max"), kind: "bound" },
  { find: / [+-] 1\b/g, to: () => "", kind: "number" },
  { find: /\bLIMIT 1\b/g, to: () => "LIMIT 2", kind: "number" },
  { find: /\b(?:ASC|DESC)\b/g, to: either("asc", "DESC"), kind: "order" },
  { find: /(?<=\bORDER BY [\w.]+)(?=[,)\s])(?! (?:ASC|DESC))/g, to: () => " DESC", kind: "order" },
  { find: / FOR (?:NO KEY )?UPDATE(?: OF \w+)?(?: SKIP LOCKED)?/g, to: () => "", kind: "lock left out" },
  { find: / SKIP LOCKED\b/g, to: () => "", kind: "lock left out" },
  { find: / ON CONFLICT(?: \([^()]*\))? DO NOTHING/g, to: () => "", kind: "condition dropped" },
  { find: /\b(?:true|false)\b/g, to: either("true", "false"), kind: "boolean flipped" },
];

const LUA_SWAPS: readonly Swap[] = [
  { find: /(?<= )(<=|>=|<|>)(?= )/g, to: (sign) => (sign.length === 2 ? sign.charAt(0) : `${sign}=`), kind: "bound" },
  { find: /(?<= )(==|~=)(?= )/g, to: (sign) => (sign === "==" ? "~=" : "=="), kind: "condition negated" },
  { find: /\b(?:and|or)\b/g, to: either("and", "or"), kind: "and, or" },
  { find: /\bnot (?=[\w(])/g, to: () => "", kind: "condition negated" },
  { find: / [+-] 1\b/g, to: () => "", kind: "number" },
  { find: /\bmath\.(?:min|max)(?=\()/g, to: either("math.min", "math.max"), kind: "bound" },
  { find: /\b(?:true|false)\b/g, to: either("true", "false"), kind: "boolean flipped" },
  { find: /(?<=\bif )[^\n]+?(?= then\b)/g, to: () => "false", kind: "body dropped" },
  { find: /(?<=\bif )[^\n]+?(?= then\b)/g, to: () => "true", kind: "condition fixed" },
  // Statements of one line: an assignment to what exists, or a call.
  {
    find: /(?<=\n *)(?=\S)(?!local|return|end|else|if|for|while|function)[\w.[\]#+, ]+ = [^\n]+(?=\n)/g,
    to: blank,
    kind: "assignment left out",
  },
  { find: /(?<=\n *)(?=\S)(?!function|if|for|return)[\w.]+\([^\n]*\)(?=\n)/g, to: blank, kind: "call left out" },
];

/** Where a condition ends, on its own level of parentheses. */
const CONDITION_END =
  /^(?:AND|OR|GROUP|ORDER|LIMIT|RETURNING|THEN|LOOP|UNION|FOR|ON|DO|WHEN|ELSE|END|INTO|OFFSET|FETCH|FROM|SET|WINDOW)\b/;

const STATEMENT =
  /(?<=(?:;|\bBEGIN|\bTHEN|\bELSE|\bLOOP)\s+)(?:UPDATE|DELETE|INSERT|PERFORM|NOTIFY|[\w.[\]]+ :=)[^;]*;/g;

export function statementFlaws(source: SourceFile): readonly Edit[] {
  return statementTexts(source).flatMap((text) =>
    text.language === "lua" ? swaps(text, LUA_SWAPS) : sqlFlaws(source, text),
  );
}

function sqlFlaws(source: SourceFile, text: StatementText): readonly Edit[] {
  return [...swaps(text, SQL_SWAPS), ...conditions(source, text), ...left(text)];
}

function swaps({ start, masked }: StatementText, rules: readonly Swap[]): readonly Edit[] {
  return rules.flatMap(({ find, to, kind }) =>
    [...masked.matchAll(find)]
      // A call or an assignment over more than one line is no statement by itself.
      .filter(([text]) => to !== blank || isBalanced(text))
      .map(({ 0: text, index }) => ({
        start: start + index,
        end: start + index + text.length,
        text: to(text),
        kind,
      })),
  );
}

/** One condition is dropped: the first with the AND behind it, another with the word before it, a WHERE with its only one. */
function conditions(source: SourceFile, { start, masked }: StatementText): readonly Edit[] {
  return [...masked.matchAll(/\b(WHERE|AND|OR|IF|WHEN|ON) (?!CONFLICT)/g)].flatMap(({ 0: found, 1: word, index }) => {
    if (word === "AND" && /\bBETWEEN [^\s]+ $/.test(masked.slice(0, index))) return [];
    const from = index + found.length;
    const end = conditionEnd(masked, from);
    const condition = masked.slice(from, end).trimEnd();
    const next = /^AND /.exec(masked.slice(end));
    const isFirst = word !== "AND" && word !== "OR";
    if (condition === "" || (isFirst && word !== "WHERE" && next === null)) return [];
    const behind = from + condition.length;
    // Its parameters must stay: a statement with fewer of them would be refused at once.
    if (/[?$]/.test(condition)) {
      const settled = word === "OR" ? "AND false" : "OR true";
      return [edit(start, from, behind, `(${source.text.slice(start + from, start + behind)} ${settled})`)];
    }
    if (isFirst && next !== null) return [edit(start, from, end + next[0].length, "")];
    return [edit(start, index, behind, "")];
  });
}

function conditionEnd(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const sign = text.charAt(at);
    if (sign === "(") depth += 1;
    else if (sign === ")") depth -= 1;
    const ends = depth < 0 || sign === ";" || sign === "`" || sign === '"' || (sign === "," && depth === 0);
    if (ends) return at;
    if (depth === 0 && /\s/.test(text.charAt(at - 1)) && CONDITION_END.test(text.slice(at, at + 12))) return at;
  }
  return text.length;
}

/** Statements of PL/pgSQL. */
function left({ start, masked }: StatementText): readonly Edit[] {
  return [...masked.matchAll(STATEMENT)]
    .filter(([text]) => isBalanced(text) && !/\b(?:THEN|LOOP)\b(?![^]*\bEND\b)/.test(text))
    .map(({ 0: text, index }) => ({
      start: start + index,
      end: start + index + text.length,
      text: "NULL;",
      kind: /^(?:UPDATE|DELETE|INSERT|PERFORM|NOTIFY)/.test(text) ? "statement left out" : "assignment left out",
    }));
}

function edit(start: number, from: number, to: number, text: string): Edit {
  return { start: start + from, end: start + to, text, kind: "condition dropped" };
}

function blank(): string {
  return "";
}

function isBalanced(text: string): boolean {
  return [...text.matchAll(/[({[]/g)].length === [...text.matchAll(/[)}\]]/g)].length;
}
