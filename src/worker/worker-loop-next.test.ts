import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setStage, type Stage } from "../../test/worker-stage.ts";
import type { Settlement } from "../engine/port.ts";
import type { Worker } from "../client/worker.ts";

/** A worker whose items end when the test says so, each after long enough to be no quick one. */
class SlowWork {
  readonly stage: Stage;
  readonly worker: Worker;
  readonly begun: string[] = [];
  readonly #open = new Map<string, (how: Error | undefined) => void>();

  constructor(context: TestContext, concurrency: number) {
    this.stage = setStage();
    const handle = ({ id }: { readonly id: string }): Promise<void> => {
      this.begun.push(id);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#open.set(id, (how) => (how === undefined ? resolve() : reject(how)));
      return promise;
    };
    this.worker = this.stage.queue.work(handle, { concurrency });
    context.after(() => {
      for (const id of this.#open.keys()) this.#open.get(id)?.(undefined);
      void this.worker.stop({ grace: 0 });
    });
  }

  async line(key: string, ...ids: readonly string[]): Promise<void> {
    await this.stage.queue.submitMany(ids.map((id) => ({ key, payload: null, id })));
    await this.stage.clock.pass(10);
  }

  async end(id: string, how?: Error): Promise<void> {
    this.#open.get(id)?.(how);
    this.#open.delete(id);
    await this.stage.clock.pass(10);
  }

  get settled(): readonly Settlement[] {
    return this.stage.engine.settlements.flat();
  }
}

describe("a worker with a slow handler", () => {
  test("goes on with the key in the settlement of the item before, without a claim", async (context) => {
    const work = new SlowWork(context, 1);
    await work.line("car", "a", "b", "c");
    const claims = work.stage.engine.claims.length;
    await work.end("a");
    await work.end("b");
    assert.deepEqual(work.begun, ["a", "b", "c"]);
    assert.equal(work.stage.engine.claims.length, claims, "claims that were made between the items");
    const asked = work.settled.map(({ next }) => next?.items);
    assert.deepEqual(asked, [1, 1], "the items that each settlement asks for");
  });

  test("does not ask for more of a key that has no more, and claims instead", async (context) => {
    const work = new SlowWork(context, 1);
    await work.line("car", "a");
    await work.line("bus", "b");
    await work.end("a");
    assert.deepEqual(work.begun, ["a", "b"]);
    assert.deepEqual(
      work.settled.map(({ next }) => next),
      [undefined],
    );
  });

  test("does not go on after a failure that is tried again", async (context) => {
    const work = new SlowWork(context, 1);
    await work.line("car", "a", "b");
    await work.end("a", new Error("not yet"));
    assert.deepEqual(
      work.settled.map(({ ending, next }) => [ending.type, next]),
      [["retry", undefined]],
    );
  });

  test("does not go on when it stops", async (context) => {
    const work = new SlowWork(context, 1);
    await work.line("car", "a", "b");
    const stopped = work.worker.stop({ grace: 1_000 });
    await work.end("a");
    assert.deepEqual((await stopped).finished, 1);
    assert.deepEqual(
      work.settled.map(({ next }) => next),
      [undefined],
    );
    assert.deepEqual(work.begun, ["a"]);
  });

  test("gives back what it was granted while it stopped", async (context) => {
    const work = new SlowWork(context, 1);
    const { engine, clock } = work.stage;
    await work.line("car", "a", "b");
    const answered = Promise.withResolvers<void>();
    const store = work.stage.store.connect();
    await store.declare({ queue: "cars" });
    engine.onSettle = async (settlements) => {
      const results = await store.settle(settlements);
      if (settlements.some(({ next }) => next !== undefined)) await answered.promise;
      return results;
    };
    await work.end("a");
    const stopped = work.worker.stop({ grace: 1_000 });
    answered.resolve();
    await clock.pass(10);
    await stopped;
    assert.deepEqual(work.begun, ["a"]);
    const report = await work.stage.queue.item("b");
    assert.deepEqual([report?.state, report?.attempt], ["waiting", 0]);
  });

  test("never runs more than its slots, with a claim and a settlement under way", async (context) => {
    const work = new SlowWork(context, 2);
    await work.line("car", "a", "b", "c");
    await work.end("a");
    await work.line("bus", "x", "y");
    await work.line("van", "z");
    assert.equal(work.worker.running, 2, "items that run in two slots");
  });
});
