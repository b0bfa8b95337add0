import assert from "node:assert/strict";
import { test } from "node:test";
import { aftermath } from "../../test/manual-clock.ts";
import { Bed, wakeStage } from "../../test/wake/stage.ts";

test("one subscription per signal, however many listen; it begins with the first and ends after the last", async () => {
  const { clock, adapters, wakes } = wakeStage(1);
  const [adapter] = adapters;
  const [wake] = wakes;
  assert.ok(adapter !== undefined && wake !== undefined);
  await aftermath();
  assert.deepEqual(adapter.listening, []);
  const leave = [wake.onWork("cars", new Bed(1)), wake.onWork("cars", new Bed(1)), wake.onWork("vans", new Bed(1))];
  await aftermath();
  assert.deepEqual(adapter.listening, ["baton.work"]);
  const stop = wake.onEnded("cars", () => undefined);
  wake.onLost(() => undefined);
  await aftermath();
  assert.deepEqual(adapter.listening, ["baton.work", "baton.ended", "baton.lost"]);
  for (const one of leave) one();
  stop();
  stop();
  await clock.pass(3_000);
  assert.equal(adapter.listening.length, 3, "whoever left may come back");
  await clock.pass(2_000);
  assert.deepEqual(adapter.listening, ["baton.lost"]);
});

test("whoever comes and goes all the time keeps one subscription", async () => {
  const { clock, adapters, wakes } = wakeStage(1);
  for (let round = 0; round < 100; round += 1) {
    const leave = wakes[0]?.onWork("cars", new Bed(1));
    await clock.pass(100);
    leave?.();
    await clock.pass(100);
  }
  assert.equal(adapters[0]?.subscriptions, 1);
});

test("a subscription that fails after the last one has left is not tried for ever", async () => {
  const { clock, adapters, wakes } = wakeStage(1);
  const [adapter] = adapters;
  assert.ok(adapter);
  adapter.isDown = true;
  // Both in one turn: that it fails is known afterwards.
  wakes[0]?.onWork("cars", new Bed(1))();
  await clock.pass(3_000);
  adapter.isDown = false;
  await clock.pass(10_000);
  assert.deepEqual(adapter.listening, []);
});

test("changes are made one at a time, and the last word counts", async () => {
  const { clock, adapters, wakes } = wakeStage(1);
  const [adapter] = adapters;
  assert.ok(adapter);
  const listen = adapter.listen.bind(adapter);
  const gates: (() => void)[] = [];
  let most = 0;
  let under = 0;
  adapter.listen = async (...given) => {
    under += 1;
    most = Math.max(most, under);
    await new Promise<void>((resolve) => gates.push(resolve));
    under -= 1;
    return await listen(...given);
  };
  const first = wakes[0]?.onWork("cars", new Bed(1));
  first?.();
  await clock.pass(6_000);
  const second = wakes[0]?.onWork("cars", new Bed(1));
  second?.();
  wakes[0]?.onWork("cars", new Bed(1))();
  await clock.pass(6_000);
  assert.equal(gates.length, 1, "the first is still under way");
  gates.shift()?.();
  await aftermath();
  assert.deepEqual(adapter.listening, [], "by then nobody wanted it");
  wakes[0]?.onWork("cars", new Bed(1));
  await aftermath();
  gates.shift()?.();
  await aftermath();
  assert.deepEqual(adapter.listening, ["baton.work"]);
  assert.equal(most, 1);
});
