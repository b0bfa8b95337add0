import assert from "node:assert/strict";
import { test } from "node:test";
import { cases, type ConformanceTarget } from "../src/conformance/index.ts";
import { MemoryStore } from "../src/engines/memory/index.ts";
import { addEngineTests } from "./add-engine-tests.ts";

const store = new MemoryStore();

const target: ConformanceTarget = {
  name: "memory",
  open: async () => store.connect(),
  // State in memory cannot outlive its process. What a restart can show here is that nothing depends on handles:
  // the suite has closed them all, and opens new ones.
  restart: async () => undefined,
};

addEngineTests("the memory engine", target);

test("the names of the cases differ", () => {
  const names = cases.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});
