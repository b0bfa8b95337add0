import assert from "node:assert/strict";
import { test } from "node:test";
import { BatonError } from "../domain/errors.ts";
import { describeWakeWarning } from "./outage.ts";

const REST =
  " Nothing is lost. Until the carrier is back, idle workers of other processes start new work when they next look for it, seconds later.";

test("a warning of a carrier says what happened, and not what to do about a call", () => {
  const warning = (error: unknown): string | undefined =>
    describeWakeWarning({ type: "wakes-lost", carrier: "redis", error });
  const away = "Redis cannot be reached at 127.0.0.1:9 (connect ECONNREFUSED 127.0.0.1:9)";
  const store = new BatonError("STORE_UNAVAILABLE", `${away}. Nothing was done. Repeat the call.`);
  assert.equal(warning(store), `Wake-ups are not carried over redis: ${away}.${REST}`);
  assert.equal(
    warning(new BatonError("STORE_UNAVAILABLE", `${away}.`)),
    `Wake-ups are not carried over redis: ${away}.${REST}`,
  );
  assert.equal(
    warning(new Error("It broke. Then it stayed so.")),
    `Wake-ups are not carried over redis: It broke. Then it stayed so.${REST}`,
  );
  assert.equal(warning("broken"), `Wake-ups are not carried over redis: broken.${REST}`);
  assert.equal(describeWakeWarning({ type: "wakes-back", carrier: "redis", afterMs: 1 }), undefined);
});
