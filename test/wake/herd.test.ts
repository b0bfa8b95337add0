import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { driveHerd, type HerdReport } from "./herd/shepherd.ts";

let server: NatsServer | undefined;

before(async () => {
  server = await startNatsServer();
});
after(() => server?.stop());

function drive(hints: boolean, submits: "together" | "one by one"): Promise<HerdReport> {
  const carrier = server?.url ?? "";
  return driveHerd({ carrier, processes: 4, workers: 50, items: 10, hints, submits });
}

describe("200 idle workers in four processes", { concurrency: 1 }, () => {
  test("with hints ask the store at most 20 times about 10 items", async (context) => {
    const { looks, done, runs } = await drive(true, "together");
    context.diagnostic(`${looks} claims at the store`);
    assert.deepEqual({ done, runs }, { done: 10, runs: 10 });
    assert.ok(looks <= 20, `${looks} claims reached the store`);
  });

  test("without hints do each item once", async (context) => {
    const { looks, done, runs } = await drive(false, "together");
    context.diagnostic(`${looks} claims at the store`);
    assert.deepEqual({ done, runs }, { done: 10, runs: 10 });
  });

  // Together, one look of each process finds several items, and it would not be seen if hints were broken.
  test("with hints ask about half as often about items that come one by one", async (context) => {
    const hinted = await drive(true, "one by one");
    const unhinted = await drive(false, "one by one");
    context.diagnostic(`${hinted.looks} claims at the store with hints, ${unhinted.looks} without`);
    for (const { done, runs } of [hinted, unhinted]) assert.deepEqual({ done, runs }, { done: 10, runs: 10 });
    assert.ok(hinted.looks <= 22, `${hinted.looks} claims reached the store with hints`);
    assert.ok(unhinted.looks >= 40, `${unhinted.looks} claims reached the store without hints`);
  });
});
