import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setStage } from "../worker-stage.ts";

test("waiting for an outcome ends with the reason of its signal, and leaves no listener on it", async () => {
  const { queue, clock } = setStage();
  const receipt = await queue.submit("car1", 1, { id: "a" });
  const enough = new AbortController();
  const reason = new Error("Enough.");
  const waiting = receipt.outcome({ signal: enough.signal, timeout: "1h" });
  await clock.pass(0);
  enough.abort(reason);
  await assert.rejects(waiting, reason);
  assert.equal(getEventListeners(enough.signal, "abort").length, 0);
});
