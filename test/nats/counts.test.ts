/** What is counted in a queue that is too large to look at key by key. */
import assert from "node:assert/strict";
import { test } from "node:test";
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
