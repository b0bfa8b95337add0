/** Operators make mistakes: consumers and streams that are deleted under processes that run. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { connect as connectNats } from "@nats-io/transport-node";
import { ask } from "../../servers/nats-probe.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import type { Grant } from "../../src/engine/port.ts";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import type { Wire } from "../../src/engines/nats/wire.ts";
import { type Baton, BatonError, OutcomeUnknown, type Queue } from "../../src/index.ts";
import { claim, entry } from "../cars.ts";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { leftInStream, NatsDesk, now, refusal, untilPulled } from "./desk.ts";

/** About a second where nothing else runs. */
/** So many items show that submissions go on. */
const ENOUGH = 20;
const SOON_MS = 8_000;
/** There, what is made is there when most servers have it. */
const CLUSTER_MS = 10_000;
const PATIENCE_MS = 45_000;
const CONSUMERS = ["ready-0", "ready-1", "ready-2"];
const TIMEOUT = { timeout: 60_000 };

interface Ran {
  readonly key: string;
  readonly payload: number;
  readonly fence: number;
  readonly from: number;
  to: number;
}

/** Two connections with a worker each, and one that submits. */
class Shop {
  readonly port: number;
  readonly submitter: Baton;
  readonly ran: Ran[] = [];
  readonly lost: string[] = [];
  workMs = 0;

  private constructor(port: number, submitter: Baton) {
    this.port = port;
    this.submitter = submitter;
  }

  static async open(
    context: TestContext,
    options: { readonly slots?: number; readonly lease?: string; readonly isCluster?: boolean } = {},
  ): Promise<Shop> {
    const { desk, port } = await (options.isCluster === true ? onCluster(context) : onServer(context));
    const shop = new Shop(port, await desk.connect());
    for (let index = 0; index < 2; index += 1) {
      const baton = await desk.connect({
        onEvent: (event) => {
          if (event.type === "lost" && event.why === "taken") shop.lost.push(event.item.key);
        },
      });
      baton.queue<number>("cars", { lease: options.lease ?? "30s" }).work(
        async ({ key, payload }, lease) => {
          const one: Ran = { key, payload, fence: lease.fence, from: now(), to: Infinity };
          shop.ran.push(one);
          try {
            if (shop.workMs > 0) await wait(shop.workMs, undefined, { signal: lease.signal });
          } finally {
            one.to = now();
          }
        },
        { concurrency: options.slots ?? 4 },
      );
    }
    await shop.cars.submit("first", 0);
    await shop.until("the first item", () => shop.ran.length === 1);
    return shop;
  }

  get cars(): Queue<number> {
    return this.submitter.queue<number>("cars");
  }

  async until(what: string, isSo: () => boolean, withinMs = SOON_MS): Promise<number> {
    using lateness = new Lateness();
    const from = now();
    await until(isSo, what);
    const ms = now() - from;
    lateness.assertWithin(ms, withinMs, what);
    return ms;
  }

  async deleteConsumer(name: string, stream = "baton-cars"): Promise<void> {
    await ask(this.port, `$JS.API.CONSUMER.DELETE.${stream}.${name}`);
  }

  async deleteStream(name = "baton-cars"): Promise<void> {
    await ask(this.port, `$JS.API.STREAM.DELETE.${name}`);
  }

  has(payload: number): boolean {
    return this.ran.some((one) => one.payload === payload && one.to < Infinity);
  }
}

describe("a consumer that somebody deletes is made anew by those who work", () => {
  test("while they wait", TIMEOUT, async (context) => {
    const shop = await Shop.open(context);
    for (const name of CONSUMERS) await shop.deleteConsumer(name);
    await shop.deleteConsumer("due-cars", "baton");
    await shop.cars.submit("car1", 1);
    await shop.cars.submit("car2", 2, { level: "high" });
    await shop.cars.submit("car3", 3, { delay: "100ms" });
    const ms = await shop.until("all three", () => [1, 2, 3].every((payload) => shop.has(payload)));
    context.diagnostic(`after ${ms.toFixed(0)} ms`);
    assert.equal(shop.ran.length, 4);
    assert.deepEqual(
      (await shop.submitter.check()).filter(({ severity }) => severity === "error"),
      [],
    );
  });

  test("while items run and more are submitted, again and again", TIMEOUT, async (context) => {
    const shop = await Shop.open(context);
    shop.workMs = 2;
    const keys = Array.from({ length: 60 }, (_, index) => `car${index}`);
    let payload = 0;
    for (let round = 0; round < 20; round += 1) {
      const submitted = shop.cars.submitMany(keys.map((key) => ({ key, payload: (payload += 1) })));
      await shop.deleteConsumer(CONSUMERS[round % 2] ?? "");
      await submitted;
    }
    await shop.until("all of them", () => new Set(shop.ran.map((one) => one.payload)).size === payload + 1, 20_000);
    await shop.until("their ends", () => shop.ran.every(({ to }) => to < Infinity));
    assertExclusive(shop.ran);
    context.diagnostic(`${shop.ran.length - payload - 1} of ${payload} ran twice`);
    // What is in the stream is gone when nothing is left to do: no delivery of an old consumer was forgotten.
    assert.equal(await leftInStream(shop.port, "baton-cars", SOON_MS), 0);
  });

  test("while every slot is taken, and nobody asks it for anything", TIMEOUT, async (context) => {
    const shop = await Shop.open(context, { slots: 1 });
    shop.workMs = 500;
    await shop.cars.submitMany([1, 2, 3, 4].map((payload) => ({ key: `car${payload}`, payload })));
    await shop.until("two that run", () => shop.ran.length === 3);
    await shop.deleteConsumer("ready-1");
    await shop.until("all of them", () => [1, 2, 3, 4].every((payload) => shop.has(payload)), 4_000);
    assert.equal(shop.ran.length, 5);
  });

  test("as it was: a queue that is paused stays paused", TIMEOUT, async (context) => {
    const shop = await Shop.open(context);
    await shop.cars.pause();
    await shop.deleteConsumer("ready-1");
    await shop.cars.submit("car1", 1);
    await until(async () => (await consumer(shop.port, "ready-1")).created !== undefined, "the consumer");
    assert.equal((await consumer(shop.port, "ready-1")).paused, true);
    await wait(300);
    assert.equal(shop.has(1), false, "nothing starts while the queue is paused");
    await shop.deleteConsumer("ready-0");
    await shop.cars.resume();
    await shop.until("what was submitted meanwhile", () => shop.has(1));
  });
});

describe("a stream that somebody deletes is made anew by those who use its queue", () => {
  test("while workers wait", TIMEOUT, async (context) => {
    const shop = await Shop.open(context);
    await shop.deleteStream();
    await shop.until("the stream", () => shop.ran.length === 1);
    await shop.cars.submit("first", 1);
    const ms = await shop.until("an item after that", () => shop.has(1));
    context.diagnostic(`after ${ms.toFixed(0)} ms`);
    await shop.cars.submitMany([2, 3, 4].map((payload) => ({ key: "first", payload })));
    await shop.until("more", () => [2, 3, 4].every((payload) => shop.has(payload)));
    assertExclusive(shop.ran);
  });

  test(
    "while items run: their holders are told, and whoever comes next has a higher fence",
    TIMEOUT,
    async (context) => {
      const shop = await Shop.open(context);
      shop.workMs = 60_000;
      await shop.cars.submitMany([1, 2].map((payload) => ({ key: `car${payload}`, payload })));
      await shop.until("both", () => shop.ran.length === 3);
      await shop.deleteStream();
      const ms = await shop.until("that both are told", () => shop.lost.length === 2);
      context.diagnostic(`told after ${ms.toFixed(0)} ms`);
      shop.workMs = 0;
      await shop.cars.submitMany([3, 4].map((payload) => ({ key: `car${payload - 2}`, payload })));
      await shop.until("two more", () => shop.has(3) && shop.has(4));
      // The handlers that were told had ended before.
      assertExclusive(shop.ran);
      assert.deepEqual(shop.ran.map(({ key }) => key).toSorted(), ["car1", "car1", "car2", "car2", "first"]);
      assert.deepEqual(shop.lost.toSorted(), ["car1", "car2"]);
    },
  );

  test("while every slot is taken: at the latest when a lease is renewed", TIMEOUT, async (context) => {
    const shop = await Shop.open(context, { slots: 1, lease: "3s" });
    shop.workMs = 60_000;
    await shop.cars.submitMany([1, 2].map((payload) => ({ key: `car${payload}`, payload })));
    await shop.until("both", () => shop.ran.length === 3);
    await shop.deleteStream();
    const ms = await shop.until("that both are told", () => shop.lost.length === 2);
    context.diagnostic(`told after ${ms.toFixed(0)} ms`);
  });

  test(
    "and who waits hears of it, though the server tells nobody that the pulls which stood there are gone",
    TIMEOUT,
    async (context) => {
      const { desk, server } = await NatsDesk.withServer(context);
      const wire = wireOf(await connectNats({ servers: [server.url] }), true);
      const deaf: Wire = {
        ...wire,
        subscribe: (subject, receive) =>
          wire.subscribe(subject, (delivery) => delivery.status !== 409 && receive(delivery)),
      };
      const worker = new NatsEngine({ wire: deaf, clock: systemClock, random: Math.random });
      context.after(() => worker.close());
      await worker.declare({ queue: "cars" });
      const asked = (): Promise<readonly Grant[]> =>
        worker.claim({ ...claim, signal: AbortSignal.timeout(PATIENCE_MS) });
      // It hears that there is no stream, or that there is another one.
      const waiting = asked().catch(async (error: unknown) => {
        assert.ok(error instanceof BatonError && error.code === "QUEUE_MISSING", String(error));
        await worker.declare({ queue: "cars" });
        return await asked();
      });
      await untilPulled(server.port);
      await ask(server.port, "$JS.API.STREAM.DELETE.baton-cars");
      await (await desk.connect()).queue<number>("cars").submit("car1", 1);
      const [grant] = await waiting;
      assert.equal(grant?.item.key, "car1");
    },
  );

  test("by whoever submits, if nobody works", TIMEOUT, async (context) => {
    const { desk, server } = await NatsDesk.withServer(context);
    const cars = (await desk.connect()).queue<number>("cars");
    const others = (await desk.connect()).queue<number>("cars");
    await Promise.all([cars.submitMany(manyOf(10)), others.submit("car1", 1)]);
    await ask(server.port, "$JS.API.STREAM.DELETE.baton-cars");
    const from = now();
    await Promise.all([cars.submitMany(manyOf(10)), others.submit("car1", 1), cars.submit("car2", 2, { id: "two" })]);
    context.diagnostic(`accepted after ${(now() - from).toFixed(0)} ms`);
    assert.ok(now() - from < SOON_MS);
    assert.equal((await cars.status()).waiting, 12);
  });

  test("while items are submitted without end", TIMEOUT, async (context) => {
    const shop = await Shop.open(context);
    let payload = 0;
    const accepted: number[] = [];
    const over = new AbortController();
    const submitOn = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const mine = (payload += 1);
        try {
          await shop.cars.submit(`car${mine % 20}`, mine);
          accepted.push(mine);
        } catch (error) {
          // The server had it when the stream was deleted, and does not answer any more.
          assert.ok(error instanceof OutcomeUnknown, String(error));
        }
      }
    };
    const submitting = Array.from({ length: 4 }, () => submitOn());
    await shop.until("some that were accepted before", () => accepted.length >= ENOUGH);
    await shop.deleteStream();
    const before = payload;
    const sinceThen = (): readonly number[] => accepted.filter((one) => one > before);
    await shop.until("more that were accepted", () => sinceThen().length >= ENOUGH, 20_000);
    over.abort();
    await Promise.all(submitting);
    assert.ok(accepted.length >= payload - submitting.length, "at most one each is unknown");
    const late = sinceThen();
    await shop.until("all that was accepted since", () => late.every((one) => shop.has(one)), 10_000);
    assertExclusive(shop.ran);
  });

  test(
    "unless somebody has taken its place: then who submits, and who works, hears what is wrong",
    TIMEOUT,
    async (context) => {
      const { desk, server } = await NatsDesk.withServer(context);
      const troubles: string[] = [];
      const baton = await desk.connect({
        onEvent: (event) => void (event.type === "trouble" && troubles.push(String(event.error))),
      });
      const cars = baton.queue<number>("cars");
      await cars.submit("car1", 1);
      await ask(server.port, "$JS.API.STREAM.DELETE.baton-cars");
      await ask(server.port, "$JS.API.STREAM.CREATE.theirs", { name: "theirs", subjects: ["baton.q.cars.x"] });
      const { code, message } = await refusal(cars.submit("car2", 2));
      assert.equal(code, "STORE_UNAVAILABLE");
      assert.match(message, /overlap/);
      cars.work(() => undefined);
      await until(() => troubles.length > 0, "that the worker tells");
      assert.match(troubles[0] ?? "", /overlap/);
      await ask(server.port, "$JS.API.STREAM.DELETE.theirs");
      const receipt = await cars.submit("car2", 3, { id: "three" });
      assert.equal((await receipt.outcome({ timeout: "10s" })).state, "done");
    },
  );

  test("and who waits for an item that is gone hears that it is", TIMEOUT, async (context) => {
    const { desk, server } = await NatsDesk.withServer(context);
    const cars = (await desk.connect()).queue<number>("cars");
    const receipt = await cars.submit("car1", 1, { id: "one" });
    const waiting = refusal(receipt.outcome());
    await ask(server.port, "$JS.API.STREAM.DELETE.baton-cars");
    assert.equal((await waiting).code, "QUEUE_MISSING");
    await cars.submit("car2", 2);
    const { code, message } = await refusal(receipt.outcome());
    assert.equal(code, "STORE_CORRUPT");
    assert.match(message, /Item one is gone: somebody deleted the stream of queue cars.*another id/);
  });

  test(
    "also the one that all queues share: workers go on, holders learn that they have lost",
    TIMEOUT,
    async (context) => {
      const shop = await Shop.open(context, { lease: "3s" });
      const lock = await shop.submitter.lock("report", { lease: "3s" });
      await shop.deleteStream("baton");
      await until(() => lock.signal.aborted, "that the lock is lost");
      const again = await shop.submitter.lock("report", { lease: "3s", wait: "2s" });
      assert.ok(again.fence > lock.fence);
      await again.release();
      await shop.cars.submit("first", 1, { id: "one" });
      await shop.cars.submit("car2", 2, { delay: "100ms" });
      await shop.until("both", () => shop.has(1) && shop.has(2), 10_000);
      assert.deepEqual(await shop.cars.levels(), ["high", "normal", "low"]);
    },
  );
});

test("the same in a cluster, where consumers and streams have leaders", { timeout: 120_000 }, async (context) => {
  const shop = await Shop.open(context, { isCluster: true, lease: "3s" });
  for (const name of CONSUMERS) await shop.deleteConsumer(name);
  await shop.cars.submit("car1", 1);
  const ms = await shop.until("an item after its consumer was deleted", () => shop.has(1), CLUSTER_MS);
  shop.workMs = 60_000;
  await shop.cars.submit("car2", 2);
  await shop.until("one that runs", () => shop.ran.some(({ key }) => key === "car2"), CLUSTER_MS);
  await shop.deleteStream();
  // It is told a quarter of a second before the stream is made anew. Three servers on a busy machine may take longer than that to pass it on.
  await shop.until("that its holder is told", () => shop.lost.length === 1, CLUSTER_MS);
  shop.workMs = 0;
  await shop.cars.submit("car2", 3);
  const streamMs = await shop.until("an item after the stream was deleted", () => shop.has(3), CLUSTER_MS);
  context.diagnostic(`after ${ms.toFixed(0)} and ${streamMs.toFixed(0)} ms`);
  assert.deepEqual(shop.lost, ["car2"]);
  assertExclusive(shop.ran);
});

test("fences rise though the clock of whoever makes the stream anew is an hour late", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const fences: number[] = [];
  for (const lateMs of [0, 3_600_000, 7_200_000]) {
    const connection = await connectNats({ servers: [server.url] });
    const clock = { ...systemClock, wall: () => systemClock.wall() - lateMs };
    const engine = new NatsEngine({ wire: wireOf(connection, true), clock, random: Math.random });
    await engine.declare({ queue: "cars" });
    await engine.submit([{ ...entry, key: "car1" }]);
    const [grant] = await engine.claim({ ...claim, signal: AbortSignal.timeout(PATIENCE_MS) });
    fences.push(grant?.lease.fence ?? 0);
    await engine.close();
    await ask(server.port, "$JS.API.STREAM.DELETE.baton-cars");
  }
  assert.deepEqual(
    fences,
    fences.toSorted((a, b) => a - b),
  );
  assert.equal(new Set(fences).size, 3);
});

test(
  "an acknowledgement of a delivery by a consumer that is no more removes its message all the same",
  TIMEOUT,
  async (context) => {
    const { server } = await NatsDesk.withServer(context);
    const engine = await openNatsUrl(server.url);
    await engine.declare({ queue: "cars" });
    await engine.submit([
      { ...entry, key: "car1" },
      { ...entry, key: "car2" },
    ]);
    const wanted = { ...claim, max: 2, signal: AbortSignal.timeout(PATIENCE_MS) };
    // Deleted and made anew by somebody else, while deliveries are on their way and before this process hears of it.
    const claiming = engine.claim(wanted);
    await ask(server.port, "$JS.API.CONSUMER.DELETE.baton-cars.ready-1");
    const other = await openNatsUrl(server.url);
    await other.declare({ queue: "cars" });
    const grants = await claiming;
    const more = grants.length === 2 ? [] : await engine.claim({ ...wanted, max: 1 });
    const ending = { type: "done" } as const;
    const from = now();
    const results = await engine.settle([...grants, ...more].map(({ lease }) => ({ lease, ending })));
    assert.deepEqual(results, ["settled", "settled"]);
    context.diagnostic(`settled after ${(now() - from).toFixed(0)} ms`);
    await Promise.all([engine.close(), other.close()]);
    assert.equal(await leftInStream(server.port, "baton-cars", SOON_MS), 0);
  },
);

async function onServer(context: TestContext): Promise<{ readonly desk: NatsDesk; readonly port: number }> {
  const { desk, server } = await NatsDesk.withServer(context);
  return { desk, port: server.port };
}

async function onCluster(context: TestContext): Promise<{ readonly desk: NatsDesk; readonly port: number }> {
  const { desk, cluster } = await NatsDesk.withCluster(context);
  return { desk, port: cluster.servers[0]?.port ?? 0 };
}

function manyOf(count: number): readonly { readonly key: string; readonly payload: number }[] {
  return Array.from({ length: count }, (_, index) => ({ key: `many${index}`, payload: index }));
}

/** Of one key never two at a time, and fences rise; items of one run have the same. */
function assertExclusive(ran: readonly Ran[]): void {
  for (const [key, runs] of Map.groupBy(ran, (one) => one.key)) {
    for (const [index, { fence, from }] of runs.entries()) {
      const before = runs[index - 1];
      if (before === undefined) continue;
      assert.ok(fence >= before.fence, `${key}: fence ${fence} after ${before.fence}`);
      assert.ok(from >= before.to, `${key} ran twice at a time`);
    }
  }
}

async function consumer(port: number, name: string): Promise<{ readonly created?: string; readonly paused?: boolean }> {
  return (await ask(port, `$JS.API.CONSUMER.INFO.baton-cars.${name}`)) as { created?: string; paused?: boolean };
}
