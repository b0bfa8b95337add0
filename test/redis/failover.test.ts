/** A replica takes over that has not got the last writes. What can be lost is said on the engine's page; fences are not among it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startRedisServer } from "../../servers/redis-server.ts";
import { commandOf } from "../../servers/redis-cluster.ts";
import type { Engine, Grant } from "../../src/engine/port.ts";
import { openRedis } from "./handles.ts";
import { until } from "../kit/until.ts";
import { refusal } from "./desk.ts";

const SOON_MS = 15_000;

async function submit(engine: Engine, key: string, id: string): Promise<void> {
  const terms = { level: "normal", delayMs: 0, mode: "fifo", keyLimit: 100, queueLimit: 100, keepMs: 60_000 } as const;
  const payload = { type: "text/plain", body: id };
  const [result] = await engine.submit([{ queue: "cars", key, id, payload, ...terms }]);
  assert.ok(result?.ok === true);
}

async function claim(engine: Engine): Promise<Grant> {
  const signal = AbortSignal.timeout(SOON_MS);
  const [grant] = await engine.claim({
    queue: "cars",
    worker: "w",
    max: 1,
    leaseMs: 60_000,
    patienceMs: 60_000,
    signal,
  });
  assert.ok(grant !== undefined);
  return grant;
}

test("fences rise over a failover that lost the last leases", { timeout: 60_000 }, async (context) => {
  const primary = await startRedisServer();
  context.after(() => primary.stop());
  const replica = await startRedisServer({ settings: { replicaof: `127.0.0.1 ${primary.port}` } });
  context.after(() => replica.stop());
  const before = await openRedis(primary.url);
  context.after(() => before.close());
  await before.declare({ queue: "cars" });
  await submit(before, "car1", "first");
  await until(async () => {
    const info = String(await commandOf(replica, "INFO", "replication"));
    const items = await commandOf(replica, "HLEN", "{baton:cars}:items").catch(() => 0);
    return info.includes("master_link_status:up") && items === 1;
  }, "the replica has the item");
  assert.equal((await refusal(openRedis(replica.url).then((engine) => readOnly(engine)))).code, "STORE_READ_ONLY");

  // From here on the replica hears of nothing: as if the network between them were slow.
  await commandOf(replica, "REPLICAOF", "NO", "ONE");
  const lost = [await claim(before)];
  for (let count = 0; count < 5; count += 1) {
    await before.settle(lost.slice(-1).map(({ lease }) => ({ lease, ending: { type: "release" } })));
    lost.push(await claim(before));
  }
  await submit(before, "car2", "never replicated");
  await primary.kill();

  const after = await openRedis(replica.url);
  context.after(() => after.close());
  await after.declare({ queue: "cars" });
  const grant = await claim(after);
  assert.equal(grant.item.id, "first");
  for (const { lease } of lost) assert.ok(grant.lease.fence > lease.fence, "A fence after the failover");
  const stale = lost.map(({ lease }) => ({ lease, ending: { type: "done" } as const }));
  assert.ok((await after.settle(stale)).every((result) => result === "lost"));
  assert.equal((await after.find({ queue: "cars", id: "never replicated" }))?.state, undefined);
  assert.deepEqual(await after.settle([{ lease: grant.lease, ending: { type: "done" } }]), ["settled"]);
});

async function readOnly(engine: Engine): Promise<void> {
  try {
    await engine.declare({ queue: "other" });
  } finally {
    await engine.close();
  }
}
