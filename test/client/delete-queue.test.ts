/** What becomes of those who use a queue that somebody else deletes. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import { Baton, type BatonEvent, QueueMissing, QueueNotEmpty } from "../../src/index.ts";
import { setStage } from "../worker-stage.ts";

/** Two connections to one store. */
function connections(context: TestContext): readonly [Baton, Baton] {
  const store = new MemoryStore();
  const open = (): Baton => {
    const baton = new Baton(store.connect());
    context.after(() => baton.close());
    return baton;
  };
  return [open(), open()];
}

describe("a queue that is deleted", () => {
  test("is made anew by the next submission of a connection that knew it, with what that connection wants of it", async (context) => {
    const [one, other] = connections(context);
    const mine = one.queue("cars");
    const theirs = other.queue("cars");
    await mine.submit("car1", 1, { id: "order-1" });
    await assert.rejects(theirs.delete(), (error) => error instanceof QueueNotEmpty && error.contents.waiting === 1);
    assert.equal(await theirs.delete({ force: true }), true);
    assert.equal(await theirs.delete(), false);
    assert.deepEqual(await one.queues(), []);
    assert.equal((await mine.submit("car1", 1, { id: "order-1" })).duplicate, false);
    assert.equal(await theirs.delete({ force: true }), true);
    const receipts = await mine.submitMany([
      { key: "car1", payload: 1 },
      { key: "car2", payload: 2 },
    ]);
    assert.equal(receipts.length, 2);
    assert.equal((await theirs.status()).waiting, 2);
    assert.equal(await theirs.delete({ force: true }), true);
    assert.equal((await mine.status()).waiting, 0);
    assert.deepEqual(await one.queues({ queue: "cars" }), [await mine.status()]);
    assert.deepEqual(await one.queues({ queue: "bikes" }), []);
  });

  test("takes the outcomes and the holds with it that somebody waits for", async (context) => {
    const [one, other] = connections(context);
    const cars = one.queue("cars");
    const receipt = await cars.submit("car1", 1, { id: "order-1" });
    const held = await cars.hold("car2");
    const lost = new Promise((resolve) => held.signal.addEventListener("abort", resolve));
    const waiting = assert.rejects(receipt.outcome(), QueueMissing);
    assert.equal(await other.queue("cars").delete({ force: true }), true);
    await waiting;
    await lost;
  });

  test("is waited for by its workers, which do not make it anew, with one warning", async () => {
    const stage = setStage();
    const ran: unknown[] = [];
    const worker = stage.queue.work(({ payload }) => void ran.push(payload));
    await stage.clock.pass(100);
    const other = new Baton(stage.store.connect(), { clock: stage.clock });
    assert.equal(await other.queue("cars").delete(), true);
    await stage.clock.pass(5_000);
    assert.deepEqual(await other.queues(), []);
    const troubles = stage.events.filter((event: BatonEvent) => event.type === "trouble");
    assert.equal(troubles.length, 1);
    await other.queue("cars").submit("car1", "paint");
    await stage.clock.pass(3_000);
    assert.deepEqual(ran, ["paint"]);
    assert.equal(stage.told().at(-1), "recovered");
    await worker.stop();
    await other.close();
  });
});
