import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { cases, type ConformanceTarget, runCase } from "../src/conformance/index.ts";
import { sqliteEngine } from "../src/engines/sqlite/index.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-conformance-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const target: ConformanceTarget = {
  name: "sqlite",
  open: () => sqliteEngine({ file: join(folder, "store.db") }),
  // The suite has closed every handle: the log was written back, and the file is all that is left of the store.
  restart: async () => undefined,
};

describe("the SQLite engine conforms", { concurrency: 8 }, () => {
  for (const one of cases.filter(({ alone }) => !alone)) addTest(one);
});

describe("the SQLite engine conforms when it is alone", { concurrency: 1 }, () => {
  for (const one of cases.filter(({ alone }) => alone)) addTest(one);
});

function addTest(one: (typeof cases)[number]): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
