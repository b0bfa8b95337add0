/** The original service's examples, run as they are on emulated clouds. */
import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";
import { until } from "../../kit/until.ts";
import { openPubsubDesk, type PubsubDesk } from "../sources/pubsub-desk.ts";
import { openSqsDesk, REGION, type SqsDesk } from "../sources/sqs-desk.ts";
import { OriginalRelay, Receiver } from "./original-stage.ts";
import { playInTime } from "../../kit/lateness.ts";

/** Holds of a few seconds are kept, and end, as they should where timers are no later than this. */
const MOST_LATE_MS = 100;

const PROJECT = "test-project-156022";
const ORDER = { specversion: "1.0", id: "1", source: "orders", type: "com.dapr.event.sent", data: { order: 7 } };

async function ended(started: ReturnType<OriginalRelay["start"]>): Promise<void> {
  started.child.kill("SIGTERM");
  const { code, stdout, stderr } = await started.finished;
  assert.equal(code, 0, `${stdout}\n${stderr}`);
}

/**
 * An emulator per test: it does not notice that a process which waited for a message is gone, and would give it one.
 */
async function emulator(t: TestContext): Promise<{ readonly desk: SqsDesk; readonly isEmpty: () => boolean }> {
  const desk = await openSqsDesk();
  t.after(() => desk[Symbol.asyncDispose]());
  const names = ["high-priority", "low-priority"];
  for (const name of names) desk.server.createQueue(name, { region: REGION });
  const isEmpty = (): boolean =>
    names.map((name) => desk.counts(name)).every(({ ready, hidden }) => ready + hidden === 0);
  return { desk, isEmpty };
}

describe("the original's example for SQS", { concurrency: 3 }, () => {
  test("high before low, four at a time, and fatal codes are not tried again", async (t) => {
    const { desk, isEmpty } = await emulator(t);
    const receiver = await Receiver.open(t);
    for (let index = 0; index < 6; index += 1) desk.send("low-priority", `low ${index}`);
    for (let index = 0; index < 6; index += 1) desk.send("high-priority", `high ${index}`);
    const relay = new OriginalRelay(t, "aws_sqs_example_config.json", { receiver, sqs: desk.server.address }).start();
    await until(() => receiver.requests.length === 4, "four deliveries", 60_000);
    assert.ok(receiver.bodies().every((body) => body.startsWith("high")));
    for (const { answer } of receiver.requests) answer(200);
    await until(() => receiver.requests.length === 8, "four more");
    assert.equal(receiver.bodies().filter((body) => body.startsWith("high")).length, 6, "the rest of high comes first");
    assert.deepEqual([receiver.requests[0]?.method, receiver.requests[0]?.contentType], ["POST", "text/plain"]);
    // One is refused for good, one fails once; all others are well.
    receiver.handle = ({ body, delivery, answer }) => {
      if (body === "low 5") answer(450);
      else answer(body === "low 4" && delivery === 1 ? 500 : 200);
    };
    for (const request of receiver.requests.slice(4)) receiver.handle(request);
    await until(isEmpty, "everything to be handled", 30_000);
    const countOf = (wanted: string): number => receiver.bodies().filter((body) => body === wanted).length;
    assert.deepEqual([countOf("low 5"), countOf("low 4"), countOf("low 3")], [1, 2, 1]);
    await ended(relay);
  });

  test("work that takes longer than the visibility timeout is delivered once", async (t) => {
    await playInTime(MOST_LATE_MS, async () => {
      const { desk, isEmpty } = await emulator(t);
      const receiver = await Receiver.open(t);
      desk.send("low-priority", "long");
      const places = { receiver, sqs: desk.server.address, visibilitySeconds: 4 };
      await using _relay = await new OriginalRelay(t, "aws_sqs_example_config.json", places).open();
      receiver.handle = ({ answer }) => setTimeout(answer, 9_000, 200);
      await until(() => receiver.requests.length > 0 && isEmpty(), "the work to be done", 60_000);
      assert.deepEqual(receiver.bodies(), ["long"]);
    });
  });

  test("kill -9 in the middle: it is delivered again by another, and nothing is lost", async (t) => {
    const { desk, isEmpty } = await emulator(t);
    const receiver = await Receiver.open(t);
    for (let index = 0; index < 6; index += 1) desk.send("high-priority", `message ${index}`);
    const places = { receiver, sqs: desk.server.address, visibilitySeconds: 2 };
    const original = new OriginalRelay(t, "aws_sqs_example_config.json", places);
    const killed = original.start();
    await until(() => receiver.requests.length === 4, "deliveries", 60_000);
    killed.child.kill("SIGKILL");
    await killed.finished;
    receiver.handle = ({ answer }) => answer(200);
    const other = original.start();
    await until(isEmpty, "everything to be handled", 60_000);
    assert.equal(new Set(receiver.bodies()).size, 6);
    assert.ok(receiver.requests.length >= 10, "four of them twice");
    await ended(other);
  });

  for (const file of ["dapr_aws_sqs_example_config.json", "dapr_aws_sqs_example_config.older.json"]) {
    test(`${file}: the CloudEvent arrives as Dapr would deliver it, and RETRY and 404 are tried again`, async (t) => {
      const { desk, isEmpty } = await emulator(t);
      const receiver = await Receiver.open(t);
      desk.server.createTopic("orders", { region: REGION });
      desk.server.subscribe({ topic: "orders", queue: "high-priority", region: REGION });
      desk.server.publish("orders", JSON.stringify(ORDER), { region: REGION });
      // Not an envelope: it cannot be unwrapped, and is deleted.
      desk.send("low-priority", "nonsense");
      receiver.handle = ({ answer, delivery }) => {
        if (delivery === 2) answer(404);
        else answer(200, delivery === 1 ? '{"status":"RETRY"}' : "");
      };
      await using _relay = await new OriginalRelay(t, file, { receiver, sqs: desk.server.address }).open();
      await until(() => receiver.requests.length > 2 && isEmpty(), "the event", 60_000);
      assert.deepEqual(
        receiver.bodies().map((body) => JSON.parse(body) as unknown),
        [ORDER, ORDER, ORDER],
      );
      assert.equal(receiver.requests[0]?.contentType, "application/json");
    });
  }
});

describe("the original's example for Pub/Sub", () => {
  let desk: PubsubDesk & AsyncDisposable;
  before(async () => {
    desk = await openPubsubDesk(PROJECT);
  });
  after(() => desk[Symbol.asyncDispose]());

  test("high before low, and fatal codes are not tried again", async (t) => {
    const receiver = await Receiver.open(t);
    const topics = { high: await desk.topic(), low: await desk.topic() };
    await desk.subscription(topics.high, { name: "high-priority-sub" });
    await desk.subscription(topics.low, { name: "low-priority-sub" });
    for (const [level, topic] of Object.entries(topics)) {
      for (let index = 0; index < 4; index += 1) await desk.publish(topic, `${level} ${index}`);
    }
    const relay = new OriginalRelay(t, "gcp_pubsub_example_config.json", { receiver, pubsub: desk.address }).start();
    await until(() => receiver.requests.length === 4, "four deliveries", 60_000);
    assert.ok(receiver.bodies().every((body) => body.startsWith("high")));
    receiver.handle = ({ body, delivery, answer }) => {
      if (body === "low 3") answer(412);
      else answer(body === "low 2" && delivery === 1 ? 500 : 200);
    };
    for (const request of receiver.requests.slice(0, 4)) receiver.handle(request);
    await until(() => receiver.requests.length === 9, "the rest, and one of them again", 30_000);
    await ended(relay);
    assert.equal(receiver.bodies().filter((body) => body === "low 3").length, 1);
  });
});
