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
    assert.equal(await worker.stopped.then(() => clockStands(stage)), true, "nothing is left to happen after the stop");
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
    let heldItems = 0;
    stage.engine.onClaim = async (request): Promise<readonly Grant[]> => {
      const grants = await stage.store.connect().claim(request);
      await reply.promise;
      return grants;
    };
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(() => (heldItems += 1));
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: 1_000 });
    await stage.clock.pass(10);
    reply.resolve();
    await stage.clock.pass(0);
    assert.deepEqual(await stopping, { finished: 0, released: 1, abandoned: 0 });
    assert.equal(heldItems, 0);
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
    assert.deepEqual(await stopping, { finished: 0, released: 0, abandoned: 1 });
  });

  test("counts a handler that ended after the grace, by what became of its item", async () => {
    const stage = setStage({ lease: "1m" });
    const endings: Readonly<Record<string, PromiseWithResolvers<void>>> = {
      done: Promise.withResolvers(),
      back: Promise.withResolvers(),
      stuck: Promise.withResolvers(),
    };
    for (const key of Object.keys(endings)) await stage.queue.submit(key, 1, { id: key });
    const worker = stage.queue.work(({ key }) => endings[key]?.promise, { concurrency: 3 });
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: 1_000 });
    await stage.clock.pass(2_000);
    endings["done"]?.resolve();
    endings["back"]?.reject(new Error("told to stop"));
    await stage.clock.pass(ABORT_WAIT_MS);
    assert.deepEqual(await stopping, { finished: 1, released: 1, abandoned: 1 });
    assert.equal(await stateOf(stage, "done"), "done 1");
    assert.equal(await stateOf(stage, "back"), "waiting 0");
  });

  test("counts what the store refused to settle as abandoned: it runs again", async () => {
    const stage = setStage();
    const finish = Promise.withResolvers<void>();
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(() => finish.promise);
    await stage.clock.pass(0);
    stage.engine.onSettle = async (settlements) => settlements.map(() => "lost");
    const stopping = worker.stop({ grace: 1_000 });
    finish.resolve();
    await stage.clock.pass(0);
    assert.deepEqual(await stopping, { finished: 0, released: 0, abandoned: 1 });
  });

  test("counts a handler that ended after its lease was lost as abandoned", async () => {
    const stage = setStage();
    const finish = Promise.withResolvers<void>();
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(() => finish.promise);
    await stage.clock.pass(0);
    stage.engine.onRenew = never;
    const stopping = worker.stop({ grace: "1m" });
    await stage.clock.pass(LEASE_MS * 2);
    finish.resolve();
    await stage.clock.pass(0);
    assert.deepEqual(await stopping, { finished: 0, released: 0, abandoned: 1 });
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
    assert.equal(stopped, false, "the worker has not stopped yet");
    other.resolve("fine");
    await stage.clock.pass(500);
    assert.equal(stopped, true, "the worker has stopped");
    await slow.stop({ grace: 0 });
  });

  test("goes on when it got work while it looked", async () => {
    const stage = setStage();
    const answer = Promise.withResolvers<void>();
    const look = stage.engine.queues.bind(stage.engine);
    stage.engine.queues = async (request) => {
      const report = await look(request);
      await answer.promise;
      return report;
    };
    const finish = Promise.withResolvers<string>();
    const worker = stage.queue.work(() => finish.promise, { untilEmpty: true });
    let stopped = false;
    void worker.stopped.then(() => (stopped = true));
    await stage.clock.pass(0);
    await stage.queue.submit("car1", 1);
    await stage.clock.pass(0);
    assert.equal(worker.running, 1);
    answer.resolve();
    await stage.clock.pass(0);
    const claims = stage.engine.claims.length;
    await stage.queue.submit("car2", 2);
    finish.resolve("fine");
    await stage.clock.pass(1_000);
    assert.ok(stage.engine.claims.length > claims, "it asks for more");
    assert.ok(stopped, "and stops when all is done");
    assert.equal((await stage.queue.status()).waiting, 0);
  });

  test("looks at once when its own last item is done", async () => {
    const stage = setStage();
    const finish = Promise.withResolvers<string>();
    await stage.queue.submit("car1", 1);
    const worker = stage.queue.work(() => finish.promise, { untilEmpty: true });
    let stopped = false;
    void worker.stopped.then(() => (stopped = true));
    await stage.clock.pass(10);
    finish.resolve("fine");
    await stage.clock.pass(0);
    assert.ok(stopped, "it does not wait for its next look");
  });

  test("looks again after a look that failed, each time that one fails", async () => {
    const stage = setStage();
    const { engine } = stage;
    const looks: number[] = [];
    const fails = [false, true, true, false, true];
    const other = Promise.withResolvers<string>();
    await stage.queue.submit("car1", 1);
    const slow = stage.queue.work(() => other.promise);
    await stage.clock.pass(0);
    const look = engine.queues.bind(engine);
    engine.queues = async (request) => {
      looks.push(stage.clock.monotonic());
      if (fails[looks.length - 1] === true) throw new OutcomeUnknown("a look");
      return await look(request);
    };
    const worker = stage.queue.work(() => undefined, { untilEmpty: true });
    let stopped = false;
    void worker.stopped.then(() => (stopped = true));
    await stage.clock.pass(1_000);
    assert.deepEqual(
      looks.map((at) => at - (looks[0] ?? 0)),
      [0, 250, 500, 750, 1_000],
    );
    other.resolve("fine");
    await stage.clock.pass(0);
    assert.equal(stopped, false, "nothing wakes it");
    await stage.clock.pass(250);
    assert.equal(stopped, true, "the worker has stopped");
    await stage.clock.pass(10_000);
    assert.equal(looks.length, 6, "and looks no more");
    await slow.stop({ grace: 0 });
  });
});

function clockStands({ clock }: Stage): boolean {
  return clock.timers === 0;
}
