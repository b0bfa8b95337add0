/**
 * SQL and Lua stand in the sources as literals of TypeScript. This finds them, and hides what no flaw may touch: comments,
 * their own literals, and what TypeScript puts in. The places stay the same.
 */
import {
  isNoSubstitutionTemplateLiteral,
  isTemplateExpression,
  type Node,
  type SourceFile,
  SyntaxKind,
} from "typescript/unstable/ast";

export interface StatementText {
  readonly language: "sql" | "lua";
  /** Where it begins in the file. */
  readonly start: number;
  /** Hidden parts are words of `_`, so that they read as a value. */
  readonly masked: string;
}

const SQL =
  /\b(SELECT\s|INSERT INTO|UPDATE\s+\S+.*\sSET\b|DELETE FROM|WHERE\s|ON CONFLICT|ORDER BY|RETURN QUERY|PERFORM\s|BEGIN\s)/s;
const LUA = /\b(redis\.call|local \w|function \w|\bthen\b.*\bend\b)/s;

const SQL_HIDDEN = /--[^\n]*|'(?:[^']|'')*'/g;
const LUA_HIDDEN = /--[^\n]*|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g;

export function statementTexts(source: SourceFile): readonly StatementText[] {
  const found: StatementText[] = [];
  const visit = (node: Node): void => {
    if (isLiteral(node)) {
      const start = node.getStart(source);
      const text = withoutSubstitutions(source, node);
      const language = LUA.test(text) ? "lua" : SQL.test(text) ? "sql" : undefined;
      if (language !== undefined) {
        const hidden = language === "lua" ? LUA_HIDDEN : SQL_HIDDEN;
        found.push({ language, start, masked: text.replaceAll(hidden, (part) => hide(part)) });
      }
    }
    node.forEachChild(visit);
  };
  for (const statement of source.statements) visit(statement);
  return found;
}

function isLiteral(node: Node): boolean {
  return isTemplateExpression(node) || isNoSubstitutionTemplateLiteral(node) || node.kind === SyntaxKind.StringLiteral;
}

function withoutSubstitutions(source: SourceFile, node: Node): string {
  let text = node.getText(source);
  if (!isTemplateExpression(node)) return text;
  const start = node.getStart(source);
  for (const { expression, literal } of node.templateSpans) {
    // From the dollar to the closing brace, with which the next part of the literal begins.
    const from = source.text.lastIndexOf("${", expression.getStart(source)) - start;
    const to = literal.getStart(source) + 1 - start;
    text = text.slice(0, from) + hide(text.slice(from, to)) + text.slice(to);
  }
  return text;
}

/** Of a comment nothing is left; a value stays one word. */
function hide(part: string): string {
  return part.startsWith("--") ? " ".repeat(part.length) : part.replaceAll(/[^\n]/g, "_");
}
