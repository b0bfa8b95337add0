/** A key of a queue, held as a lock. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Baton, BatonError, LeaseLost, LockBusy } from "../../src/index.ts";
import { aftermath } from "../manual-clock.ts";
import { never } from "../scripted-engine.ts";
import { LEASE_MS, setStage } from "../worker-stage.ts";
import { namesOf } from "./lock-stage.ts";

describe("queue.hold", () => {
  test("waits for whoever works on the key, and keeps workers from it until it is released", async () => {
    const { baton, queue } = setStage();
    const gate = Promise.withResolvers<void>();
    const ran: unknown[] = [];
    await queue.submit("car1", 1);
    const worker = queue.work(async (item) => {
      ran.push(item.payload);
      await gate.promise;
    });
    await aftermath();
    await assert.rejects(queue.hold("car1", { wait: "0s" }), LockBusy);
    const holding = queue.hold("car1");
    await aftermath();
    gate.resolve();
    const held = await holding;
    assert.equal(held.name, "cars/car1");
    await queue.submit("car1", 2);
    await aftermath();
    assert.deepEqual(ran, [1]);
    assert.equal(await held.release(), true, "the key was held until its release");
    await aftermath();
    assert.deepEqual(ran, [1, 2]);
    await worker.stop();
    await baton.close();
  });

  for (const { wait, ms } of [
    { wait: "8s", ms: 9_000 },
    { wait: "0s", ms: 6_000 },
  ]) {
    test(`of a store that does not answer is given up after ${ms} ms with a wait of ${wait}, and let go of when it comes`, async () => {
      const { baton, queue, clock, engine } = setStage();
      const hold = engine.hold.bind(engine);
      const gate = Promise.withResolvers<void>();
      engine.hold = async (request) => {
        await gate.promise;
        return await hold({ ...request, signal: AbortSignal.abort() });
      };
      const refused: unknown[] = [];
      queue.hold("car1", { wait }).catch((error: unknown) => refused.push(error));
      await clock.pass(ms - 1);
      assert.equal(refused.length, 0);
      await clock.pass(1);
      const [error] = refused;
      assert.ok(error instanceof BatonError);
      assert.equal(error.code, "STORE_UNAVAILABLE");
      assert.match(error.message, /did not answer in time, so lock "cars\/car1"/);
      gate.resolve();
      await aftermath();
      assert.equal(engine.settlements[0]?.[0]?.ending.type, "release");
      engine.hold = hold;
      await using again = await queue.hold("car1", { wait: "0s" });
      assert.equal(again.name, "cars/car1");
      await baton.close();
    });
  }

  test("is renewed, and lost at its local deadline when the store is silent", async () => {
    const { baton, queue, clock, engine, events } = setStage();
    const held = await queue.hold("car1");
    await clock.pass(LEASE_MS * 3);
    held.check();
    engine.onRenew = never;
    await clock.pass(LEASE_MS);
    assert.throws(() => held.check(), LeaseLost);
    assert.deepEqual(namesOf(events), ["session-lost expired"]);
    assert.equal(await held.release(), false, "it was let go of before");
    await baton.close();
  });

  test("is asked for at once when somebody says that the key went to another, and lost if the store says so too", async () => {
    const { baton, queue, clock, engine, events } = setStage();
    const hold = engine.hold.bind(engine);
    const told: (() => void)[] = [];
    engine.hold = async (request) => {
      const lease = await hold(request);
      if (lease !== undefined) told.push(() => request.lost?.(lease));
      return lease;
    };
    const held = await queue.hold("car1");
    for (const tell of told) tell();
    await clock.pass(0);
    assert.equal(engine.renewals.length, 1);
    assert.equal(held.signal.aborted, false, "that was wrong");
    engine.onRenew = () => Promise.resolve([{ ok: false }]);
    for (const tell of told) tell();
    await clock.pass(0);
    assert.ok(held.signal.reason instanceof LeaseLost);
    for (const tell of told) tell();
    assert.deepEqual(namesOf(events), ["session-lost ended"]);
    await clock.pass(LEASE_MS);
    assert.equal(engine.renewals.length, 2);
    await baton.close();
  });

  test("is let go when the connection closes, and gives up at a signal", async () => {
    const { baton, queue, store, clock } = setStage();
    const held = await queue.hold("car1");
    const giveUp = new AbortController();
    const refused = assert.rejects(queue.hold("car1", { signal: giveUp.signal }), { name: "AbortError" });
    await aftermath();
    giveUp.abort();
    await refused;
    await baton.close();
    assert.equal(held.leftMs, 0);
    const other = new Baton(store.connect(), { clock });
    await (await other.queue("cars").hold("car1", { wait: "0s" })).release();
    await other.close();
  });
});
