import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "./until.ts";

test("it resolves with what is found, at once if it is there", async () => {
  assert.equal(await until(() => "here", "a word"), "here");
  assert.equal(await until(() => 0, "a number"), 0);
});

test("it looks until something is found", async () => {
  let looks = 0;
  await until(() => (looks += 1) === 3, "the third look");
  assert.equal(looks, 3);
});

test("who waits in vain is told for what, and what failed is told as it is", async () => {
  await assert.rejects(
    until(() => false, "rain", 1),
    /^Error: Waited 1 ms in vain for rain\.$/,
  );
  await assert.rejects(
    until(() => assert.fail("no sky"), "rain"),
    /no sky/,
  );
});
