import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { cases, runConformance } from "../src/conformance/index.ts";
import { MemoryStore } from "../src/engines/memory/index.ts";
import { brokenEngines } from "./broken-engines/all.ts";

/** Broken engines make cases wait for what never comes. Sound ones need a second or two at most. */
const CASE_TIMEOUT_MS = 6_000;

describe("the conformance suite finds what is broken", { concurrency: 10 }, () => {
  for (const { guarantee, flaw, target } of brokenEngines.map((one) => ({ ...one, target: one.target() }))) {
    test(`${guarantee}: an engine that ${flaw}`, async () => {
      const { failed } = await runConformance(target, {
        filter: (one) => one.guarantee === guarantee,
        caseTimeoutMs: CASE_TIMEOUT_MS,
      });
      assert.notEqual(failed, 0, `No case of ${guarantee} noticed that the engine ${flaw}.`);
    });
  }
});

test("every guarantee has cases, and a broken engine that they find", () => {
  const guarantees = Array.from({ length: 11 }, (_, index) => `G${index + 1}`);
  assert.deepEqual([...new Set(cases.map((one) => one.guarantee))].toSorted(byNumber), guarantees);
  assert.deepEqual([...new Set(brokenEngines.map((one) => one.guarantee))].toSorted(byNumber), guarantees);
});

test("what is left out is reported with its reason", async () => {
  const store = new MemoryStore();
  const left = "fences rise when a lease runs out";
  const { passed, failed, skipped, results } = await runConformance(
    {
      name: "memory",
      open: async () => store.connect(),
      restart: "It has no restart.",
      skip: { [left]: "Takes too long." },
    },
    {
      filter: (one) =>
        one.name === left || one.name === "fences rise over a restart" || one.name === "a lease is settled once",
    },
  );
  assert.deepEqual({ passed, failed, skipped }, { passed: 1, failed: 0, skipped: 2 });
  const reasons = results.map((result) => (result.status === "skipped" ? result.reason : "")).toSorted();
  assert.deepEqual(reasons, ["", "It has no restart.", "Takes too long."]);
});

function byNumber(a: string, b: string): number {
  return Number(a.slice(1)) - Number(b.slice(1));
}
