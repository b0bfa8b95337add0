import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { Compiler } from "../../scripts/mutate/compiler.ts";
import { mutantOf, planted } from "../../scripts/mutate/mutant.ts";
import { statementFlaws } from "../../scripts/mutate/statement-flaws.ts";
import { typescriptFlaws } from "../../scripts/mutate/typescript-flaws.ts";
import { smallTree } from "./small-tree.ts";

/** Every flaw in a file with this text that the compiler accepts: the line as it is then. */
function flawedLines(context: TestContext, text: string): readonly string[] {
  const file = "src/sample.ts";
  const root = smallTree(context, { [file]: text });
  const source = readFileSync(join(root, file), "utf8");
  using compiler = new Compiler(root);
  const parsed = compiler.parse(file);
  return [...typescriptFlaws(parsed), ...statementFlaws(parsed)]
    .filter((edit) => compiler.refusal(file, planted(source, edit)) === undefined)
    .map((edit) => mutantOf(file, source, edit).after);
}

function has(lines: readonly string[], ...expected: readonly string[]): void {
  for (const line of expected) assert.ok(lines.includes(line), `expected the flaw ${line} among\n${lines.join("\n")}`);
}

suite("Flaws in TypeScript", () => {
  test("change bounds, conditions, resets, defaults, options, lists and waits", (context) => {
    const lines = flawedLines(
      context,
      `export async function play(items: number[], wait: (n: number) => Promise<void>, most = 3, name?: string): Promise<object> {
  let held = 0;
  for (const item of items.slice(0, most)) {
    if (item < 2 && held !== 5) continue;
    held = 0;
    await wait(item);
    await wait(Math.min(held, item) + 1);
  }
  return { name: name ?? "none", ...(held > 0 && { held }), urgent: true };
}
`,
    );
    has(
      lines,
      "if (item <= 2 && held !== 5) continue;",
      "if (item < 2 || held !== 5) continue;",
      "if (item < 2) continue;",
      "if (item < 3 && held !== 5) continue;",
      "if (item < 2 && held === 5) continue;",
      "if (true && held !== 5) continue;",
      "{}",
      "wait(item);",
      "await wait(Math.min(held, item) + 1); await wait(item);",
      "await wait(Math.max(held, item) + 1);",
      "await wait(Math.min(held, item) - 1);",
      "for (const item of items) {",
      "for (const item of items.slice(0)) {",
      'return { name: ("none"), ...(held > 0 && { held }), urgent: true };',
      'return { name: name ?? "none", urgent: true };',
      'return { name: name ?? "none", ...(held > 0 && { held }), urgent: false };',
    );
  });

  test("leave out what only says something, and what the compiler refuses", (context) => {
    const lines = flawedLines(
      context,
      `export function first(list: readonly string[]): string {
  const [one] = list;
  if (one === undefined) throw new Error(\`There are \${list.length + 1} of them.\`);
  return one;
}
`,
    );
    assert.deepEqual(lines, []);
  });
});

suite("Flaws in statements", () => {
  test("change conditions, orders and statements of SQL, and no comment or literal", (context) => {
    const lines = flawedLines(
      context,
      `export const upsert = (s: string): string => \`
INSERT INTO \${s}.key VALUES (1) ON CONFLICT (id) DO UPDATE SET due = 1 WHERE key.due <= now AND NOT key.held -- AND never
\`;
export const next = "SELECT id FROM item WHERE queue = ? AND level < 3 ORDER BY place LIMIT 1";
export const body = \`
BEGIN
  UPDATE key SET n = n + 1 WHERE id = 4;
  RETURN 'a < b AND c';
END\`;
`,
    );
    const insert = "INSERT INTO ${s}.key VALUES (1) ON CONFLICT (id) DO UPDATE SET due = 1";
    has(
      lines,
      `${insert} WHERE key.due < now AND NOT key.held -- AND never`,
      `${insert} WHERE NOT key.held -- AND never`,
      'export const next = "SELECT id FROM item WHERE (queue = ? OR true) AND level < 3 ORDER BY place LIMIT 1";',
      'export const next = "SELECT id FROM item WHERE queue = ? ORDER BY place LIMIT 1";',
      'export const next = "SELECT id FROM item WHERE queue = ? AND level <= 3 ORDER BY place LIMIT 1";',
      'export const next = "SELECT id FROM item WHERE queue = ? AND level < 3 ORDER BY place DESC LIMIT 1";',
      'export const next = "SELECT id FROM item WHERE queue = ? AND level < 3 ORDER BY place LIMIT 2";',
      "NULL;",
      "UPDATE key SET n = n WHERE id = 4;",
      "UPDATE key SET n = n + 1 ;",
    );
    for (const line of lines) assert.doesNotMatch(line, /RETURN 'a <= b|RETURN 'a < b'/);
    assert.ok(lines.every((line) => !line.startsWith(insert) || line.includes("-- AND never")));
  });

  test("change conditions, numbers and statements of Lua", (context) => {
    const lines = flawedLines(
      context,
      `export const script = \`
local function grant(key, now)
  if key.due <= now and not key.held then return false end
  key.attempt = key.attempt + 1
  redis.call('DEL', 'a == b')
  return math.min(key.attempt, 9)
end
\`;
`,
    );
    has(
      lines,
      "if key.due < now and not key.held then return false end",
      "if key.due <= now or not key.held then return false end",
      "if key.due <= now and key.held then return false end",
      "if false then return false end",
      "key.attempt = key.attempt",
      "return math.max(key.attempt, 9)",
      "(nothing)",
    );
    for (const line of lines) assert.doesNotMatch(line, /a ~= b/);
  });
});
