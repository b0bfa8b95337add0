/** A tree of a few files with tests that see some of it, for the program that plants flaws. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";

/** The test looks at what `accepts` answers, and only calls `close`. */
const QUEUE = `export interface Queue {
  waiting: number;
  closed: boolean;
}

export function accepts(queue: Queue, most: number): boolean {
  return queue.waiting < most;
}

export function close(queue: Queue): void {
  queue.closed = true;
}
`;

const QUEUE_TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { accepts, close } from "./queue.ts";

test("accepts up to its limit", () => {
  assert.equal(accepts({ waiting: 1, closed: false }, 2), true);
  assert.equal(accepts({ waiting: 2, closed: false }, 2), false);
  close({ waiting: 0, closed: false });
});
`;

const FORGOTTEN = `export function half(value: number): number {
  return value > 1 ? value / 2 : 0;
}
`;

const SETTINGS = {
  compilerOptions: {
    target: "es2024",
    module: "nodenext",
    types: [],
    strict: true,
    allowImportingTsExtensions: true,
    noEmit: true,
  },
  include: ["src"],
  exclude: ["src/**/*.test.ts"],
};

/** Its root. It is removed with the test. */
export function smallTree(context: TestContext, more: Readonly<Record<string, string>> = {}): string {
  const root = mkdtempSync(join(tmpdir(), "baton-small-tree-"));
  context.after(() => rmSync(root, { recursive: true, force: true }));
  const files = {
    "package.json": '{ "type": "module" }',
    "tsconfig.json": JSON.stringify(SETTINGS),
    "src/queue.ts": QUEUE,
    "src/queue.test.ts": QUEUE_TEST,
    "src/forgotten.ts": FORGOTTEN,
    ...more,
  };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return root;
}
