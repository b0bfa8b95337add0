import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lockCases, runLocksConformance } from "../../src/conformance/index.ts";
import { brokenLocks } from "./broken-locks.ts";

/** Broken locks make cases wait for what never comes. Sound ones need a few seconds at most. */
const CASE_TIMEOUT_MS = 5_000;

describe("the conformance suite of locks finds what is broken", { concurrency: 8 }, () => {
  for (const { promise, flaw, target } of brokenLocks.map((one) => ({ ...one, target: one.target() }))) {
    test(`${promise}: locks that ${flaw}`, async () => {
      const { failed } = await runLocksConformance(target, {
        filter: (one) => one.promise === promise,
        caseTimeoutMs: CASE_TIMEOUT_MS,
      });
      assert.notEqual(failed, 0, `No case of "${promise}" noticed that the locks ${flaw}.`);
    });
  }
});

test("every promise of locks has cases, and broken locks that they find", () => {
  const promises = [...new Set(lockCases.map((one) => one.promise))].toSorted();
  assert.equal(promises.length, 14);
  assert.deepEqual([...new Set(brokenLocks.map((one) => one.promise))].toSorted(), promises);
});

test("what is left out is reported with its reason", async () => {
  const [sound] = brokenLocks;
  assert.ok(sound !== undefined);
  const left = "a lock is handed on at once";
  const { skipped, results } = await runLocksConformance(
    { ...sound.target(), restart: "It has no restart.", skip: { [left]: "Takes too long." } },
    { filter: (one) => one.name === left || one.name === "fences rise over a restart" },
  );
  assert.equal(skipped, 2);
  const reasons = results.map((result) => (result.status === "skipped" ? result.reason : "")).toSorted();
  assert.deepEqual(reasons, ["It has no restart.", "Takes too long."]);
});
