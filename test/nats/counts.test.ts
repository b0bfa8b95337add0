/** What is counted in a queue that is too large to look at key by key. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { QueueFull } from "../../src/index.ts";
import { Lateness } from "../kit/lateness.ts";
import { NatsDesk } from "./desk.ts";

/** Beyond this the server's own figures are used. */
const EXACTLY_COUNTED = 4_000;
const KEYS = EXACTLY_COUNTED + 1_000;

test("a key that was lifted, worked on and is ready again counts once in a large queue", async (context) => {
  const { desk } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  const cars = baton.queue<string>("cars");
  await cars.submitMany(Array.from({ length: KEYS }, (_, n) => ({ key: `car${n}`, payload: "wash", level: "low" })));
  await cars.submit("car4711", "ambulance", { level: "high" });

  const first = Promise.withResolvers<string>();
  let started = 0;
  const worker = cars.work(
    (item) => {
      started += 1;
      first.resolve(item.payload);
    },
    { concurrency: 1 },
  );
  assert.equal(await first.promise, "ambulance");
  await worker.stop();

  const [report] = await baton.queues();
  assert.deepEqual([report?.running, report?.waiting], [0, KEYS + 1 - started]);
  const keys = await cars.keys({ limit: KEYS });
  assert.equal(
    keys.reduce((sum, { waiting }) => sum + waiting, 0),
    KEYS + 1 - started,
  );
  assert.equal(keys.find(({ key }) => key === "car4711")?.state, "ready");
});

test("keys that carry several items count all of them in a large queue", async (context) => {
  const { desk } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  const cars = baton.queue<string>("cars");
  const wash = Array.from({ length: KEYS }, (_, n) => ({ key: `car${n}`, payload: "wash", level: "low" }));
  await cars.submitMany(wash);
  await cars.submitMany(wash);
  await cars.submitMany(wash.slice(0, 500).map(({ key, payload }) => ({ key, payload, level: "high" })));
  const [report] = await baton.queues();
  assert.deepEqual(
    report?.levels.map(({ waiting }) => waiting),
    [500, 0, 2 * KEYS],
  );
});

test("near the limit of a queue submissions are not counted one by one, and the limit holds", async (context) => {
  const { desk } = await NatsDesk.withServer(context);
  const cars = (await desk.connect()).queue<null>("cars", { limits: { perQueue: 2_000 } });
  await cars.submitMany(Array.from({ length: 1_500 }, (_, n) => ({ key: `car${n}`, payload: null })));
  // Figures that are a moment old say that there is room for all.
  await wait(1_100);
  await cars.submit("car1500", null);
  await wait(100);
  using lateness = new Lateness();
  const from = performance.now();
  let accepted = 1_501;
  await assert.rejects(async () => {
    for (; accepted < 3_000; accepted += 1) await cars.submit(`car${accepted}`, null);
  }, QueueFull);
  const tookMs = performance.now() - from;
  assert.equal(accepted, 2_000);
  lateness.assertWithin(tookMs, 10_000, "500 submissions");
});
