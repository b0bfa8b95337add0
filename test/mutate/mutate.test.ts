import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { mutate, type Settings } from "../../scripts/mutate/mutate.ts";
import { changedTargets, namedTargets } from "../../scripts/mutate/targets.ts";
import type { Outcome } from "../../scripts/mutate/trial.ts";
import { smallTree } from "./small-tree.ts";

interface Played {
  readonly outcomes: readonly Outcome[];
  readonly printed: string;
}

async function play(root: string, settings: Partial<Settings> = {}): Promise<Played> {
  const lines: string[] = [];
  const outcomes = await mutate({
    root,
    targets: namedTargets(root, ["src"]),
    seed: 1,
    most: 100,
    perFolder: false,
    lanes: 2,
    budgetSeconds: 60,
    listOnly: false,
    print: (line) => lines.push(line),
    ...settings,
  });
  return { outcomes, printed: lines.join("\n") };
}

function git(root: string, ...args: readonly string[]): void {
  const who = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
  const { status, stderr } = spawnSync("git", [...who, ...args], { cwd: root, encoding: "utf8" });
  assert.equal(status, 0, stderr);
}

/** With a commit on main, and behind it a change of the one line that no test looks at. */
function changedTree(context: TestContext): string {
  const root = smallTree(context);
  git(root, "init", "--quiet", "--initial-branch=main");
  git(root, "add", ".");
  git(root, "commit", "--quiet", "--message", "one");
  const file = join(root, "src/queue.ts");
  writeFileSync(file, readFileSync(file, "utf8").replace("queue.closed = true", "queue.closed = !queue.closed"));
  return root;
}

suite("Planted flaws", () => {
  test("are killed where a test looks, and survive where none does", async (context) => {
    const root = smallTree(context);
    const before = readFileSync(join(root, "src/queue.ts"), "utf8");
    const { outcomes, printed } = await play(root);
    const told = outcomes.map(({ mutant, killedBy, passed }) => ({
      place: `${mutant.file}:${mutant.line}`,
      killedBy: killedBy?.failure,
      passed,
    }));
    assert.deepEqual(
      told.toSorted((a, b) => (a.place < b.place ? -1 : 1)),
      [
        { place: "src/forgotten.ts:2", killedBy: undefined, passed: [] },
        { place: "src/queue.ts:11", killedBy: undefined, passed: ["src/queue.test.ts"] },
        { place: "src/queue.ts:7", killedBy: "accepts up to its limit", passed: [] },
      ],
    );
    assert.match(printed, /src\/queue\.ts:11 .*\n {4}queue\.closed = true;\n {2}→ /);
    assert.match(printed, /\| `src\/` +\| +3 \| +1 \| +33 % \|/);
    assert.equal(readFileSync(join(root, "src/queue.ts"), "utf8"), before, "the tree itself must not change");
  });

  test("are told apart from tests that fail by themselves", async (context) => {
    const root = smallTree(context, {
      "src/broken.test.ts":
        'import { test } from "node:test";\nimport "./queue.ts";\ntest("no", () => { throw new Error(); });\n',
    });
    const { outcomes, printed } = await play(root, { targets: [{ file: "src/queue.ts" }] });
    assert.deepEqual(
      outcomes.map(({ mutant, killedBy }) => [mutant.line, killedBy?.test] as const).toSorted(([a], [b]) => b - a),
      [
        [11, undefined],
        [7, "src/queue.test.ts"],
      ],
    );
    assert.match(printed, /Left out, for it fails without a flaw: src\/broken\.test\.ts/);
  });

  test("are told apart from tests that fail since something else has changed", async (context) => {
    const root = smallTree(context, {
      "src/most.ts": "export const MOST = 2;\n",
      "src/together.test.ts":
        'import { test } from "node:test";\nimport { MOST } from "./most.ts";\nimport { close } from "./queue.ts";\n' +
        'test("no", () => { close({ waiting: MOST, closed: false }); if (MOST !== 2) throw new Error(); });\n',
    });
    const settings = { targets: [{ file: "src/queue.ts", lines: new Set([11]) }] };
    const [before] = (await play(root, settings)).outcomes;
    assert.deepEqual(before?.passed, ["src/queue.test.ts", "src/together.test.ts"]);
    writeFileSync(join(root, "src/most.ts"), "export const MOST = 3;\n");
    const { outcomes, printed } = await play(root, settings);
    assert.deepEqual(
      outcomes.map(({ killedBy, passed }) => [killedBy, passed]),
      [[undefined, ["src/queue.test.ts"]]],
    );
    assert.match(printed, /Left out, for it fails without a flaw: src\/together\.test\.ts/);
  });

  test("are drawn again by the same seed", async (context) => {
    const root = smallTree(context);
    const drawn = await Promise.all([7, 7].map(async (seed) => await play(root, { seed, most: 2, listOnly: true })));
    assert.equal(drawn[0]?.printed, drawn[1]?.printed);
    assert.match(drawn[0]?.printed ?? "", /2 of \d+ flaws in 2 files, drawn by --seed 7/);
  });

  test("stay within the lines that differ from a revision", async (context) => {
    const root = changedTree(context);
    const targets = changedTargets(root, "main");
    assert.deepEqual(targets, [{ file: "src/queue.ts", lines: new Set([11]) }]);
    const { printed } = await play(root, { targets, listOnly: true });
    assert.match(printed, /src\/queue\.ts:11/);
    assert.doesNotMatch(printed, /src\/queue\.ts:7/);
  });
});
