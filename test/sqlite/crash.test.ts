import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import type { Engine, Grant } from "../../src/index.ts";
import { Desk, now } from "./desk.ts";

const ROUNDS = 5;

test("what was accepted before a kill -9 is there afterwards", async (context) => {
  const desk = new Desk(context);
  const acknowledged = join(desk.folder, "acknowledged");
  let seen = 0;
  for (let round = 1; round <= ROUNDS; round += 1) {
    const child = desk.start("submit-for-ever", desk.url, String(round), acknowledged);
    for (let told = 0; told < 2 * round; told += 1) await child.next();
    await child.kill();
    const ids = existsSync(acknowledged) ? readFileSync(acknowledged, "utf8").trimEnd().split("\n") : [];
    assert.ok(ids.length > seen, "The process was killed in the middle of its submissions");
    seen = ids.length;
    // A look from another process, while the log is as the killed one left it.
    await using baton = await desk.connect();
    const cars = baton.queue("cars");
    const { waiting } = await cars.status();
    assert.ok(waiting >= ids.length, `${waiting} of ${ids.length} acknowledged items are there.`);
    for (const id of ids) assert.equal((await cars.item(id))?.state, "waiting", id);
    const damage = (await baton.check()).filter(({ severity }) => severity === "error");
    assert.deepEqual(damage, []);
  }
  context.diagnostic(`${seen} items were acknowledged in ${ROUNDS} rounds`);
});

test("fences go on rising after the store was closed and opened again", async (context) => {
  const desk = new Desk(context);
  let highest = 0;
  for (let round = 0; round < 5; round += 1) {
    const engine = await open(desk);
    await submit(engine, "car1");
    const { lease } = await claimOne(engine);
    assert.ok(lease.fence > highest, `Fence ${lease.fence} came after ${highest}.`);
    highest = lease.fence;
    // Done: nothing is left of the key, and still its next fence must be higher.
    await engine.settle([{ lease, ending: { type: "done" } }]);
    await engine.close();
  }
});

test("a lease outlives the process that took it, until it runs out", async (context) => {
  const desk = new Desk(context);
  const leaseMs = 1_500;
  const first = await open(desk);
  await submit(first, "car1");
  const began = now();
  const { lease } = await claimOne(first, leaseMs);
  await first.close();
  const second = await open(desk);
  const again = await claimOne(second);
  assert.ok(now() - began >= leaseMs, "It is not handed out before the lease has run out");
  assert.ok(again.lease.fence > lease.fence);
  assert.equal(again.item.attempt, 2);
  assert.deepEqual(await second.settle([{ lease, ending: { type: "done" } }]), ["lost"]);
  await second.close();
});

test("a lease of an earlier boot is over at once", async (context) => {
  const desk = new Desk(context);
  const first = await open(desk);
  await submit(first, "car1");
  const { lease } = await claimOne(first, 3_600_000);
  await first.close();
  // The monotonic clock begins anew at a boot, so to the new one the lease was given in the future.
  const db = new DatabaseSync(desk.file);
  db.exec("UPDATE key SET granted = granted + 1e12, at = at + 1e12 WHERE state = 2");
  db.close();
  const second = await open(desk);
  const began = now();
  const again = await claimOne(second);
  assert.ok(now() - began < 1_000, "It is handed out without waiting");
  assert.ok(again.lease.fence > lease.fence);
  assert.deepEqual(
    await second.settle([{ lease: { ...lease, handle: again.lease.handle }, ending: { type: "done" } }]),
    ["lost"],
  );
  await second.close();
});

async function open(desk: Desk): Promise<Engine> {
  const engine = await sqliteEngine({ file: desk.file });
  await engine.declare({ queue: "cars" });
  return engine;
}

async function submit(engine: Engine, key: string): Promise<void> {
  const payload = { type: "text/plain", body: "" };
  const limits = { keyLimit: 1_000, queueLimit: 1_000, keepMs: 0 };
  await engine.submit([{ queue: "cars", key, level: "normal", payload, delayMs: 0, mode: "fifo", ...limits }]);
}

async function claimOne(engine: Engine, leaseMs = 60_000): Promise<Grant> {
  const signal = AbortSignal.timeout(20_000);
  const [grant] = await engine.claim({ queue: "cars", worker: "worker", max: 1, leaseMs, patienceMs: 60_000, signal });
  assert.ok(grant, "Something was handed out");
  return grant;
}
