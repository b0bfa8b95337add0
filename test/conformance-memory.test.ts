import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cases, type ConformanceTarget, runCase } from "../src/conformance/index.ts";
import { MemoryStore } from "../src/engines/memory/index.ts";

const store = new MemoryStore();

const target: ConformanceTarget = {
  name: "memory",
  open: async () => store.connect(),
  // State in memory cannot outlive its process. What a restart can show here is that nothing depends on handles:
  // the suite has closed them all, and opens new ones.
  restart: async () => undefined,
};

describe("the memory engine conforms", { concurrency: 8 }, () => {
  for (const one of cases.filter(({ alone }) => !alone)) addTest(one);
});

describe("the memory engine conforms when it is alone", { concurrency: 1 }, () => {
  for (const one of cases.filter(({ alone }) => alone)) addTest(one);
});

test("the names of the cases differ", () => {
  const names = cases.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});

function addTest(one: (typeof cases)[number]): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
