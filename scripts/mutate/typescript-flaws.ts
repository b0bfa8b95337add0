/** The flaws that can be planted in TypeScript. They are found in the syntax tree; the compiler refuses some of them later. */
import {
  type AwaitExpression,
  type Block,
  isArrowFunction,
  isAwaitExpression,
  isBinaryExpression,
  isBindingElement,
  isBlock,
  isCallExpression,
  isClassExpression,
  isConditionalExpression,
  isExpressionStatement,
  isForStatement,
  isFunctionDeclaration,
  isFunctionExpression,
  isIdentifier,
  isIfStatement,
  isNewExpression,
  isNumericLiteral,
  isParameterDeclaration,
  isPostfixUnaryExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isReturnStatement,
  isSpreadAssignment,
  isThrowStatement,
  isTypeNode,
  isVariableStatement,
  isVoidExpression,
  isWhileStatement,
  type BinaryExpression,
  type CallExpression,
  type Expression,
  type IfStatement,
  type Node,
  type SourceFile,
  type Statement,
  SyntaxKind,
} from "typescript/unstable/ast";
import type { Edit } from "./mutant.ts";

/** Comparison operators: each with the one that differs at the bound only, if there is one. */
const COMPARISONS: Readonly<Record<string, string>> = {
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "===": "",
  "!==": "",
};
const ASSIGNMENTS: ReadonlySet<string> = new Set(["=", "+=", "-=", "??=", "||=", "&&="]);
const ADDITIONS: Readonly<Record<string, string>> = { "+": "-", "-": "+" };

/** A statement that does nothing, in every place where one may stand. */
const NOTHING = "{}";

/** Methods with a sibling that takes the same arguments. */
const SIBLINGS: Readonly<Record<string, string>> = {
  some: "every",
  every: "some",
  shift: "pop",
  pop: "shift",
  push: "unshift",
  unshift: "push",
  find: "findLast",
  findLast: "find",
  min: "max",
  max: "min",
  floor: "ceil",
  ceil: "floor",
};
/** Methods without which the value has the same type. */
const DROPPED: ReadonlySet<string> = new Set(["slice", "filter", "toReversed", "toSorted", "reverse", "sort"]);

/** Nobody tests what these say, and a flaw in what leads to them changes a text only, or lets a process linger. */
const UNTESTED = /^(unref|ref|log|error|warn|debug|info|describe|emitWarning|assert|write|toString|captureStackTrace)$/;

export function typescriptFlaws(source: SourceFile): readonly Edit[] {
  return new Finder(source).edits;
}

class Finder {
  readonly edits: Edit[] = [];
  readonly #source: SourceFile;

  constructor(source: SourceFile) {
    this.#source = source;
    for (const statement of source.statements) this.#visit(statement);
  }

  #visit(node: Node): void {
    if (isTypeNode(node) || isMessage(node) || isAssertion(node)) return;
    if (node.kind === SyntaxKind.ImportDeclaration || node.kind === SyntaxKind.ExportDeclaration) return;
    this.#find(node);
    node.forEachChild((child) => this.#visit(child));
  }

  #find(node: Node): void {
    if (isBinaryExpression(node)) this.#binary(node);
    else if (isIfStatement(node)) this.#if(node);
    else if (isConditionalExpression(node)) this.#negate(node.condition);
    else if (isWhileStatement(node)) this.#negate(node.expression);
    else if (isForStatement(node) && node.condition !== undefined) this.#negate(node.condition);
    else if (isBlock(node)) this.#swapped(node);
    else if (isExpressionStatement(node)) this.#statement(node, node.expression);
    else if (isReturnStatement(node)) this.#replace(node, NOTHING, "return left out");
    else if (isAwaitExpression(node)) this.#await(node);
    else if (isParameterDeclaration(node) || isBindingElement(node)) this.#default(node.initializer);
    else if (isSpreadAssignment(node)) this.#element(node, "option dropped");
    else if (isCallExpression(node)) this.#call(node);
    else if (isNumericLiteral(node)) this.#number(node);
    else if (node.kind === SyntaxKind.TrueKeyword) this.#replace(node, "false", "boolean flipped");
    else if (node.kind === SyntaxKind.FalseKeyword) this.#replace(node, "true", "boolean flipped");
    else if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken) {
      this.#replace(node, this.#text(node.operand), "condition negated");
    }
  }

  #binary(node: BinaryExpression): void {
    const operator = this.#text(node.operatorToken);
    const [left, right] = [this.#text(node.left), this.#text(node.right)];
    const bound = COMPARISONS[operator];
    if (bound !== undefined) {
      if (bound !== "") this.#replace(node.operatorToken, bound, "bound");
      else this.#replace(node.operatorToken, operator === "===" ? "!==" : "===", "condition negated");
      this.#replace(node, "true", "comparison fixed");
      this.#replace(node, "false", "comparison fixed");
    } else if (operator === "&&" || operator === "||") {
      this.#replace(node.operatorToken, operator === "&&" ? "||" : "&&", "and, or");
      this.#replace(node, left, "operand dropped");
      this.#replace(node, right, "operand dropped");
    } else if (operator === "??") {
      this.#replace(node, left, "default dropped");
      this.#replace(node, `(${right})`, "default always");
    } else if (operator in ADDITIONS && !isText(node)) {
      this.#replace(node.operatorToken, ADDITIONS[operator] ?? "", "arithmetic");
      this.#replace(node, left, "arithmetic");
    }
  }

  #if(node: IfStatement): void {
    this.#negate(node.expression);
    if (node.elseStatement !== undefined) {
      this.#replace(node.elseStatement, "{}", "else dropped");
      this.#replace(node.thenStatement, "{}", "body dropped");
    } else this.#replace(node, NOTHING, leaves(node.thenStatement) ? "early exit left out" : "body dropped");
  }

  /** What is returned outside a try may as well be awaited by the caller. */
  #await(node: AwaitExpression): void {
    const isLast = isReturnStatement(node.parent) || node.parent.kind === SyntaxKind.ArrowFunction;
    if (!isLast || isTried(node)) this.#replace(node, this.#text(node.expression), "await dropped");
  }

  /** A comparison is turned by itself. */
  #negate(condition: Expression): void {
    if (isBinaryExpression(condition) && this.#text(condition.operatorToken) in COMPARISONS) return;
    if (isPrefixUnaryExpression(condition)) return;
    this.#replace(condition, `!(${this.#text(condition)})`, "condition negated");
  }

  #statement(node: Statement, expression: Expression): void {
    const inner = isAwaitExpression(expression) || isVoidExpression(expression) ? expression.expression : expression;
    if (isCallExpression(inner)) {
      if (inner.expression.kind !== SyntaxKind.SuperKeyword && !UNTESTED.test(nameOf(inner))) {
        this.#replace(node, NOTHING, "call left out");
      }
    } else if (isBinaryExpression(inner)) {
      if (ASSIGNMENTS.has(this.#text(inner.operatorToken))) this.#replace(node, NOTHING, "assignment left out");
    } else if (isPostfixUnaryExpression(inner) || isPrefixUnaryExpression(inner)) {
      this.#replace(node, NOTHING, "assignment left out");
    } else if (inner.kind === SyntaxKind.DeleteExpression) this.#replace(node, NOTHING, "assignment left out");
  }

  /** Two neighbours that wait or act, the other way round. Two that only keep a value each do the same in any order. */
  #swapped({ statements }: Block): void {
    for (const [index, second] of statements.entries()) {
      const first = statements[index - 1];
      if (first === undefined || !acts(first) || !acts(second)) continue;
      const isWait = waits(first) || waits(second);
      if (!isWait && !(calls(first) && calls(second))) continue;
      const text = `${this.#text(second)} ${this.#text(first)}`;
      const [start, end] = [first.getStart(this.#source), second.getEnd()];
      this.edits.push({ start, end, text, kind: isWait ? "awaits swapped" : "statements swapped" });
    }
  }

  #call(node: CallExpression): void {
    const callee = node.expression;
    if (!isPropertyAccessExpression(callee)) return;
    const name = this.#text(callee.name);
    const sibling = SIBLINGS[name];
    if (sibling !== undefined) this.#replace(callee.name, sibling, name === "min" || name === "max" ? "bound" : "list");
    if (DROPPED.has(name)) this.#replace(node, this.#text(callee.expression), "list");
    const [first, second] = node.arguments;
    if (name === "slice" && first !== undefined && second !== undefined) {
      this.#replace(node, `${this.#text(callee)}(${this.#text(first)})`, "list");
    }
  }

  /** Ids of a protocol, bits and times of a page are no bounds; a bound is mostly a small number. */
  #number(node: Node): void {
    const value = Number(this.#text(node));
    if (!Number.isInteger(value) || value > 64 || this.#isDuration(node)) return;
    this.#replace(node, String(value + 1), "number");
    if (value > 0) this.#replace(node, String(value - 1), "number");
  }

  /** A millisecond more or less makes no difference that a test could see. */
  #isDuration(node: Node): boolean {
    const line = this.#source.text.slice(0, node.getStart(this.#source)).split("\n").at(-1) ?? "";
    return /(?:_MS|Ms|_US|Us)\b\s*[=:]/.test(line);
  }

  #default(initializer: Expression | undefined): void {
    if (initializer === undefined) return;
    const start = this.#source.text.lastIndexOf("=", initializer.getStart(this.#source));
    this.edits.push({ start, end: initializer.getEnd(), text: "", kind: "default dropped" });
  }

  /** With the comma behind it. */
  #element(node: Node, kind: string): void {
    const [comma = ""] = /^\s*,/.exec(this.#source.text.slice(node.getEnd())) ?? [];
    this.edits.push({ start: node.getStart(this.#source), end: node.getEnd() + comma.length, text: "", kind });
  }

  #replace(node: Node, text: string, kind: string): void {
    this.edits.push({ start: node.getStart(this.#source), end: node.getEnd(), text, kind });
  }

  #text(node: Node): string {
    return node.getText(this.#source);
  }
}

/** What is only said: errors, texts, and the calls that pass them on. */
function isMessage(node: Node): boolean {
  if (isThrowStatement(node) || isNewExpression(node)) return /Error\b/.test(node.getText().slice(0, 60));
  if (node.kind === SyntaxKind.TemplateExpression) return true;
  if (isFunctionDeclaration(node)) return /^describe[A-Z]/.test(node.name?.getText() ?? "");
  return isCallExpression(node) && UNTESTED.test(nameOf(node));
}

/** A check of what cannot be, which says so: no test can reach it. */
function isAssertion(node: Node): boolean {
  return isIfStatement(node) && node.elseStatement === undefined && throwsOnly(node.thenStatement);
}

function nameOf({ expression }: CallExpression): string {
  if (isPropertyAccessExpression(expression)) return expression.name.getText();
  return isIdentifier(expression) ? expression.getText() : "";
}

/** Texts are put together with the sign of a sum. */
function isText({ left, right }: BinaryExpression): boolean {
  return [left, right].some(
    (side) =>
      side.kind === SyntaxKind.StringLiteral ||
      side.kind === SyntaxKind.TemplateExpression ||
      (isBinaryExpression(side) && isText(side)),
  );
}

function throwsOnly(node: Statement): boolean {
  if (isBlock(node)) return node.statements.length === 1 && node.statements.every((only) => throwsOnly(only));
  return isThrowStatement(node) && /^throw new (Error|TypeError|RangeError)\b/.test(node.getText());
}

function isTried(node: Node): boolean {
  for (let at: Node = node; at.kind !== SyntaxKind.SourceFile; at = at.parent) {
    if (at.kind === SyntaxKind.TryStatement) return true;
  }
  return false;
}

function leaves(node: Statement): boolean {
  const last = isBlock(node) ? node.statements.at(-1) : node;
  if (last === undefined) return false;
  return [SyntaxKind.ReturnStatement, SyntaxKind.ContinueStatement, SyntaxKind.BreakStatement].includes(last.kind);
}

function acts(node: Statement): boolean {
  return isExpressionStatement(node) || (isVariableStatement(node) && waits(node));
}

/** Itself, not a function that is made here. */
function waits(node: Node): boolean {
  if (isAwaitExpression(node)) return true;
  if (isArrowFunction(node) || isFunctionExpression(node) || isClassExpression(node)) return false;
  return node.forEachChild((child) => (waits(child) ? true : undefined)) ?? false;
}

function calls(node: Statement): boolean {
  return isExpressionStatement(node) && isCallExpression(node.expression) && !UNTESTED.test(nameOf(node.expression));
}
