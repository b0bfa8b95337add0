import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { never } from "../../test/scripted-engine.ts";
import { LEASE_MS, setStage, type Stage } from "../../test/worker-stage.ts";
import { OutcomeUnknown, Stopping } from "../domain/errors.ts";
import type { Grant, QueueDeclaration } from "../engine/port.ts";
import type { Handler } from "./handler.ts";

/** Longer than any handler gets after its signal fired. */
const ABORT_WAIT_MS = 10_000;

/** Ends when it is told to, with the reason it was given. */
const obedient: Handler<unknown> = (_, lease) =>
  new Promise((__, reject) => lease.signal.addEventListener("abort", () => reject(lease.signal.reason as Error)));

async function stateOf(stage: Stage, id: string): Promise<string> {
  const report = await stage.queue.item(id);
  return `${report?.state ?? "missing"} ${report?.attempt ?? 0}`;
}

describe("stopping a worker", () => {
  test("that has nothing to do takes no time", async () => {
    const stage = setStage();
    const worker = stage.queue.work(() => undefined);
    await stage.clock.pass(0);
    assert.deepEqual(await worker.stop(), { finished: 0, released: 0, abandoned: 0 });
    assert.equal(await worker.stopped.then(() => clockStands(stage)), true);
  });

  test("lets a handler finish within its grace", async () => {
    const stage = setStage();
    const finish = Promise.withResolvers<string>();
    await stage.queue.submit("car1", 1, { id: "a" });
    await stage.queue.submit("car2", 2, { id: "b" });
    const worker = stage.queue.work(() => finish.promise);
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: "10s" });
    await stage.clock.pass(9_000);
    finish.resolve("fine");
    await stage.clock.pass(0);
    assert.deepEqual(await stopping, { finished: 1, released: 0, abandoned: 0 });
    assert.equal(await stateOf(stage, "a"), "done 1");
    assert.equal(await stateOf(stage, "b"), "waiting 0", "nothing new is started");
  });

  test("keeps the leases of those that finish: a grace may be longer than a lease", async () => {
    const stage = setStage();
    const finish = Promise.withResolvers<string>();
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(() => finish.promise);
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: LEASE_MS * 4 });
    await stage.clock.pass(LEASE_MS * 3);
    finish.resolve("fine");
    await stage.clock.pass(0);
    await stopping;
    assert.equal(await stateOf(stage, "a"), "done 1");
  });

  test("gives the item back without burning an attempt when the grace is over", async () => {
    const stage = setStage();
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(obedient);
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: 1_000 });
    await stage.clock.pass(999);
    assert.equal(await stateOf(stage, "a"), "running 1");
    await stage.clock.pass(1);
    assert.deepEqual(await stopping, { finished: 0, released: 1, abandoned: 0 });
    assert.equal(await stateOf(stage, "a"), "waiting 0");
    assert.deepEqual(stage.told(), ["started", "released"]);
  });

  test("abandons a handler that ignores its signal, and lets its lease run out", async () => {
    const stage = setStage();
    let reason: unknown;
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work((_, lease) => {
      lease.signal.addEventListener("abort", () => {
        reason = lease.signal.reason;
      });
      return never();
    });
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: 0 });
    await stage.clock.pass(ABORT_WAIT_MS);
    assert.deepEqual(await stopping, { finished: 0, released: 0, abandoned: 1 });
    assert.ok(reason instanceof Stopping);
    const renewals = stage.engine.renewals.length;
    await stage.clock.pass(LEASE_MS);
    assert.equal(stage.engine.renewals.length, renewals);
    assert.equal(await stateOf(stage, "a"), "waiting 1");
  });

  test("gives back what a claim got while it was being stopped", async () => {
    const stage = setStage();
    const reply = Promise.withResolvers<void>();
    let runs = 0;
    stage.engine.onClaim = async (request): Promise<readonly Grant[]> => {
      const grants = await stage.store.connect().claim(request);
      await reply.promise;
      return grants;
    };
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(() => (runs += 1));
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: 1_000 });
    await stage.clock.pass(10);
    reply.resolve();
    await stage.clock.pass(0);
    assert.deepEqual(await stopping, { finished: 0, released: 1, abandoned: 0 });
    assert.equal(runs, 0);
    assert.equal(await stateOf(stage, "a"), "waiting 0");
  });

  test("a second time can only shorten the grace", async () => {
    const stage = setStage();
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(obedient);
    await stage.clock.pass(0);
    const first = worker.stop({ grace: "1h" });
    const second = worker.stop({ grace: 500 });
    const third = worker.stop({ grace: "2h" });
    await stage.clock.pass(499);
    assert.equal(await stateOf(stage, "a"), "running 1");
    await stage.clock.pass(1);
    assert.deepEqual(
      await Promise.all([first, second, third]),
      Array.from({ length: 3 }, () => ({ finished: 0, released: 1, abandoned: 0 })),
    );
  });

  test("does not wait for a store that is silent much longer than the grace", async () => {
    const stage = setStage();
    stage.engine.onSettle = never;
    await stage.queue.submit("car1", 1);
    const worker = stage.queue.work(() => undefined);
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: 1_000 });
    await stage.clock.pass(1_000 + ABORT_WAIT_MS);
    await stopping;
  });

  test("before it could start is no failure, also when the store refuses it then", async () => {
    const stage = setStage();
    const declaration = Promise.withResolvers<QueueDeclaration>();
    stage.engine.declare = () => declaration.promise;
    const worker = stage.queue.work(() => undefined);
    const stopping = worker.stop({ grace: 0 });
    declaration.reject(new OutcomeUnknown("declare"));
    assert.deepEqual(await stopping, { finished: 0, released: 0, abandoned: 0 });
    await stage.clock.pass(1_000);
    assert.equal(stage.engine.claims.length, 0);
  });

  test("that could not start tells why, to whoever asks", async () => {
    const stage = setStage();
    stage.engine.declare = () => Promise.reject(new OutcomeUnknown("declare"));
    const worker = stage.queue.work(() => undefined);
    await assert.rejects(worker.stopped, OutcomeUnknown);
  });

  test("ends it for good: it asks for nothing more", async () => {
    const stage = setStage();
    const worker = stage.queue.work(() => undefined);
    await stage.clock.pass(0);
    await worker.stop({ grace: 0 });
    const claims = stage.engine.claims.length;
    await stage.queue.submit("car1", 1, { id: "a" });
    await stage.clock.pass(60_000);
    assert.equal(stage.engine.claims.length, claims);
    assert.equal(await stateOf(stage, "a"), "waiting 0");
  });
});

describe("a worker that runs until the queue is empty", () => {
  test("stops by itself when nothing is left, also of what others hold", async () => {
    const stage = setStage();
    const other = Promise.withResolvers<string>();
    await stage.queue.submit("car1", 1);
    const slow = stage.queue.work(() => other.promise);
    await stage.clock.pass(0);
    await stage.queue.submit("car2", 2, { delay: 2_000 });
    const worker = stage.queue.work(() => undefined, { untilEmpty: true });
    let stopped = false;
    void worker.stopped.then(() => (stopped = true));
    await stage.clock.pass(3_000);
    assert.equal(stopped, false);
    other.resolve("fine");
    await stage.clock.pass(500);
    assert.equal(stopped, true);
    await slow.stop({ grace: 0 });
  });
});

function clockStands({ clock }: Stage): boolean {
  return clock.timers === 0;
}
