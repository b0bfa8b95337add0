import assert from "node:assert/strict";
import { test } from "node:test";
import { failuresOf, pubsubError } from "../../../src/relay/sources/pubsub/pubsub-errors.ts";

const REQUEST = { source: "orders", subscription: "projects/p/subscriptions/s", what: "give messages" };

test("what Pub/Sub refuses is said with what to do", () => {
  const cases = [
    [5, "NOT_FOUND", /Make it/],
    [7, "STORE_UNAVAILABLE", /roles\/pubsub\.subscriber/],
    [8, "STORE_UNAVAILABLE", /quota/],
    [14, "STORE_UNAVAILABLE", /can it be reached/],
    [16, "STORE_UNAVAILABLE", /GOOGLE_APPLICATION_CREDENTIALS/],
    [undefined, "STORE_UNAVAILABLE", /PUBSUB_EMULATOR_HOST/],
  ] as const;
  for (const [code, expected, advice] of cases) {
    const error = pubsubError(
      Object.assign(new Error("as Google puts it"), code === undefined ? {} : { code }),
      REQUEST,
    );
    assert.equal(error.code, expected);
    assert.match(error.message, advice);
    assert.match(error.message, /source orders.*as Google puts it/);
  }
});

test("with exactly-once delivery it is said for each message what became of it", () => {
  const errorInfoMetadata = { b: "PERMANENT_FAILURE_INVALID_ACK_ID", c: "TRANSIENT_FAILURE_UNORDERED_ACK_ID" };
  const error = Object.assign(new Error("some"), { code: 9, errorInfoMetadata });
  const codes = failuresOf(error, ["a", "b", "c"], REQUEST)?.map((one) => one && "code" in one && one.code);
  assert.deepEqual(codes, [undefined, "LEASE_LOST", "STORE_UNAVAILABLE"]);
  assert.equal(failuresOf(new Error("none"), ["a"], REQUEST), undefined);
  assert.equal(failuresOf(error, ["other"], REQUEST), undefined);
});
