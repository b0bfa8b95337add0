import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { sourceOfSubpaths } from "../scripts/check-exports.ts";
import { root } from "../scripts/tool.ts";

/** This Node, which says that it is another. */
function importedBy(version: string, source: string): { readonly code: string; readonly message: string } {
  const older = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`;
  const script = `${older}
    const told = await import(${JSON.stringify(join(root, source))}).then(() => ({ code: "none" }), ({ code, message }) => ({ code, message }));
    process.stdout.write(JSON.stringify(told));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout) as ReturnType<typeof importedBy>;
}

describe("a Node that is too old is told so by", () => {
  for (const [subpath, source] of sourceOfSubpaths()) {
    test(subpath, () => {
      const { code, message } = importedBy("20.11.1", source);
      assert.equal(code, "NODE_TOO_OLD");
      assert.match(
        message,
        /^Baton needs Node 24 or newer; this is Node 20\.11\.1 \(.+\)\. Nothing was done\. Install /,
      );
    });
  }
});

test("newer ones are welcome, from the one that package.json names", () => {
  const { engines, sideEffects } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly engines: { readonly node: string };
    readonly sideEffects: readonly string[];
  };
  assert.equal(engines.node, ">=24");
  // A bundler leaves out what is imported for nothing but what it does, unless it is told.
  assert.deepEqual(sideEffects, ["./dist/domain/node-version.js"]);
  for (const version of ["24.0.0", "26.1.0", "100.0.0"]) assert.equal(importedBy(version, "src/index.ts").code, "none");
});
