/** However many submissions wait, leases are renewed and settled in time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { openRedisUrl } from "../../src/engines/redis/index.ts";
import { claim, entry } from "../cars.ts";
import { RedisDesk } from "./desk.ts";

const MANY = 20_000;

test("a renewal and a settlement pass what waits to be submitted", { timeout: 60_000 }, async (context) => {
  const { server } = await RedisDesk.withServer(context);
  const engine = await openRedisUrl(server.url);
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  const car = { ...entry, keyLimit: MANY, queueLimit: MANY + 1 };
  await engine.submit([{ ...car, key: "first" }]);
  const [grant] = await engine.claim({ ...claim, signal: AbortSignal.timeout(5_000) });
  assert.ok(grant !== undefined);

  let accepted = 0;
  const submitting = Array.from({ length: MANY }, async (_, index) => {
    await engine.submit([{ ...car, key: `car${index}` }]);
    accepted += 1;
  });
  const [renewed] = await engine.renew([{ lease: grant.lease, leaseMs: claim.leaseMs }]);
  const atRenewal = accepted;
  const settled = await engine.settle([{ lease: grant.lease, ending: { type: "done" } }]);
  const atSettlement = accepted;
  await Promise.all(submitting);
  assert.ok(renewed?.ok === true);
  assert.deepEqual(settled, ["settled"]);
  assert.ok(atRenewal < MANY / 4, `renewed behind ${atRenewal} submissions`);
  assert.ok(atSettlement < MANY / 2, `settled behind ${atSettlement} submissions`);
});
