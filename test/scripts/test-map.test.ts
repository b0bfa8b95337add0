import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testFiles, testMap, testsOf } from "../../scripts/test-map.ts";

// This file names what it asks for, and so would be an answer itself.
const map = testMap(testFiles().filter((file) => !import.meta.filename.endsWith(file)));

test("each module of src is reached by a test", () => {
  const reached = new Set(Array.from(map.values(), (reach) => [...reach.keys()]).flat());
  const sources = globSync("src/**/*.ts", { cwd: join(import.meta.dirname, "../..") });
  assert.deepEqual(
    sources.filter((file) => !reached.has(file.replaceAll("\\", "/"))),
    [],
  );
});

test("what a test starts as a process, and what that starts in turn, counts as reached", () => {
  for (const file of ["src/cli/guard/process.ts", "src/engines/sqlite/thread.ts", "test/nats/children/submitter.ts"])
    assert.notDeepEqual(testsOf([file], map), [], `no test is known to reach ${file}`);
});

test("a store reaches the tests that name it, and no others", () => {
  const tests = testsOf(["src/engines/nats/claims.ts"], map);
  assert.ok(tests.includes("test/nats/conformance.test.ts"), "the conformance test of NATS must be among them");
  assert.ok(!tests.includes("test/sqlite/crash.test.ts"), "a test of SQLite alone must not be among them");
});

test("the nearest test comes first", () => {
  assert.equal(testsOf(["src/worker/worker-loop.ts"], map)[0], "src/worker/worker-loop.test.ts");
});
