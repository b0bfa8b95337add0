import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import type { Item } from "../engine/port.ts";
import { warner } from "./warner.ts";

function itemOn(key: string): Item {
  const payload = { type: "application/json", body: "1" };
  return { id: key, queue: "cars", key, level: "normal", payload, headers: undefined, submittedAt: 0, attempt: 1 };
}

test("64 handlers that lose their leases in one outage are two warnings", async () => {
  const clock = new ManualClock();
  const warnings: string[] = [];
  const tell = warner(clock, (message, { code }) => warnings.push(`${code} ${message}`));
  for (let index = 1; index <= 64; index += 1) tell({ type: "discarded", item: itemOn(`car${index}`), fence: index });
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? "", /^BATON_DISCARDED The handler for key car1 ended after its lease was lost/);
  await clock.pass(1_100);
  assert.deepEqual(warnings.slice(1), [
    "BATON_DISCARDED The same of 63 more item(s) within 1 s (keys car2, car3, car4, …).",
  ]);
  tell({ type: "discarded", item: itemOn("car65"), fence: 65 });
  await clock.pass(2_100);
  assert.equal(warnings.at(-1), "BATON_DISCARDED The same of 1 more item(s) within 2 s (keys car65).");
  await clock.pass(10_000);
  assert.equal(clock.timers, 0);
  tell({ type: "discarded", item: itemOn("car66"), fence: 66 });
  assert.match(warnings.at(-1) ?? "", /for key car66 ended/);
  assert.equal(warnings.length, 4);
});
