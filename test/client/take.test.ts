import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { Baton } from "../../src/client/baton.ts";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import { Cancelled, LeaseLost } from "../../src/index.ts";
import { ManualClock } from "../manual-clock.ts";

const LEASE_MS = 3_000;

let clock: ManualClock;
let baton: Baton;
let other: Baton;

beforeEach(() => {
  clock = new ManualClock();
  const store = new MemoryStore({ clock });
  [baton, other] = [store, store].map(
    (one) => new Baton(one.connect(), { clock, random: () => 1, onEvent: () => undefined }),
  ) as [Baton, Baton];
});

function cars(of: Baton = baton): ReturnType<Baton["queue"]> {
  return of.queue("cars", { lease: LEASE_MS, retry: { backoff: 1_000 } });
}

/** Tries are called off after a moment, which somebody has to let pass. */
async function takeNow(of: Baton = baton, max = 1): ReturnType<ReturnType<typeof cars>["take"]> {
  const taking = cars(of).take({ wait: "0s", max });
  await clock.pass(200);
  return await taking;
}

describe("an item that is taken by hand", () => {
  test("is nobody else's for as long as it is kept, and done when that is said", async () => {
    const receipt = await cars().submit("car1", { do: "paint" }, { id: "a" });
    const [taken] = await cars().take();
    assert.ok(taken);
    assert.deepEqual(taken.item.payload, { do: "paint" });
    assert.equal(taken.item.attempt, 1);
    await clock.pass(LEASE_MS * 5);
    taken.lease.check();
    assert.deepEqual(await takeNow(other), []);
    await taken.done("red");
    assert.deepEqual((await receipt.outcome({ timeout: "1s" })).result, "red");
    await assert.rejects(taken.done(), LeaseLost);
  });

  test("is done also with a result that cannot be kept, and its outcome says so", async () => {
    const receipt = await cars().submit("car1", 1, { id: "a" });
    const [taken] = await cars().take();
    await taken?.done({ count: 10n });
    const { state, resultMissing } = await receipt.outcome({ timeout: "1s" });
    assert.equal(state, "done");
    assert.match(resultMissing ?? "", /BigInt/);
  });

  test("waits to be taken, up to as many as are asked for, each of another key", async () => {
    const taking = cars().take({ max: 5 });
    await cars().submit("car1", 1);
    assert.equal((await taking).length, 1);
    await cars().submitMany([1, 2, 3].map((index) => ({ key: `car${index}`, payload: index })));
    const taken = await takeNow(other, 5);
    assert.deepEqual(
      taken.map(({ item }) => item.key),
      ["car2", "car3"],
    );
    const over = new AbortController();
    const given = cars(other).take({ signal: over.signal });
    await clock.pass(0);
    over.abort();
    assert.deepEqual(await given, []);
  });

  test("is tried again, given up, or given back", async () => {
    await cars().submit("car1", 1, { id: "a" });
    const take = async (): Promise<Awaited<ReturnType<typeof takeNow>>[number]> => {
      const [taken] = await cars().take();
      assert.ok(taken);
      return taken;
    };
    await (await take()).release();
    const first = await take();
    assert.equal(first.item.attempt, 1);
    await first.retry(new Error("no paint"));
    assert.deepEqual(await takeNow(), []);
    await clock.pass(1_000);
    const second = await take();
    assert.equal(second.item.attempt, 2);
    await second.retry("soon", { after: 0 });
    await (await take()).dead("no hope");
    const [dead] = await cars().dead();
    assert.equal(dead?.failure.message, "no hope");
  });

  test("goes back when its scope ends, and runs out when its connection does", async () => {
    await cars().submit("car1", 1);
    {
      const [taken] = await cars().take();
      assert.ok(taken);
      await using _taken = taken;
    }
    const [again] = await cars().take();
    assert.equal(again?.item.attempt, 1);
    const closing = baton.close({ grace: 0 });
    await clock.pass(1_000);
    await closing;
    assert.ok(again?.lease.signal.aborted);
    // Whoever has it may still be at work on it.
    assert.deepEqual(await takeNow(other), []);
    await clock.pass(LEASE_MS);
    const [once] = await cars(other).take();
    assert.equal(once?.item.attempt, 2);
  });

  test("is lost when nobody could renew it, and then cannot be settled", async () => {
    await cars().submit("car1", 1);
    const [taken] = await cars().take();
    assert.ok(taken);
    const { signal } = taken.lease;
    await clock.stall(LEASE_MS * 2);
    assert.ok(signal.aborted && signal.reason instanceof LeaseLost);
    await assert.rejects(taken.done(), LeaseLost);
    const [again] = await cars(other).take();
    assert.equal(again?.item.attempt, 2);
  });

  test("that is cancelled is told so, and ends as cancelled whatever is said then", async () => {
    const receipt = await cars().submit("car1", 1, { id: "a" });
    const [taken] = await cars().take();
    assert.ok(taken);
    const { signal } = taken.lease;
    await cars(other).cancel("a");
    await clock.pass(LEASE_MS);
    assert.ok(signal.aborted && signal.reason instanceof Cancelled);
    await taken.retry("never mind");
    assert.equal((await receipt.outcome({ timeout: "1s" })).state, "cancelled");
  });
});
