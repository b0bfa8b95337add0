/** Every configuration that the documentation shows is read without a problem. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { readMarkdown } from "../../../scripts/markdown.ts";
import { checkSettings } from "../../../src/relay/check-settings.ts";
import { parseConfig } from "../../../src/relay/config/read-config.ts";
import { isObject } from "../../../src/relay/config/schema.ts";

const ROOT = join(import.meta.dirname, "../../..");

test("configurations in the documentation are good", async () => {
  const pages = globSync("{README.md,docs/**/*.md}", { cwd: ROOT });
  let count = 0;
  for (const page of pages) {
    for (const { language, code, line } of readMarkdown(readFileSync(join(ROOT, page), "utf8")).blocks) {
      if (!["yaml", "json"].includes(language)) continue;
      const value: unknown = parse(code);
      if (!isObject(value) || !["sources", "routes", "queues"].some((field) => field in value)) continue;
      await assert.doesNotReject(
        // What comes out of a file has exactly the fields that settings have: the relay refuses any other.
        parseConfig(value, { environment: { BATON_URL: "memory:", PORT: "5000" } }).then(checkSettings),
        `${page}:${line}`,
      );
      count += 1;
    }
  }
  assert.ok(count >= 6, `${count} were found`);
});
