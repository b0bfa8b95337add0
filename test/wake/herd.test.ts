import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { driveHerd, type HerdReport } from "./herd/shepherd.ts";

let server: NatsServer | undefined;

before(async () => {
  server = await startNatsServer();
});
after(() => server?.stop());

function drive(hints: boolean): Promise<HerdReport> {
  const carrier = server?.url ?? "";
  return driveHerd({ carrier, processes: 4, workers: 50, items: 10, hints, submits: "together" });
}

describe("200 idle workers in four processes", { concurrency: 1 }, () => {
  test("with hints ask the store at most 20 times about 10 items", async (context) => {
    const { looks, done, runs } = await drive(true);
    context.diagnostic(`${looks} claims at the store`);
    assert.deepEqual({ done, runs }, { done: 10, runs: 10 });
    assert.ok(looks <= 20, `${looks} claims reached the store`);
  });

  test("without hints do each item once", async (context) => {
    const { looks, done, runs } = await drive(false);
    context.diagnostic(`${looks} claims at the store`);
    assert.deepEqual({ done, runs }, { done: 10, runs: 10 });
  });
});
