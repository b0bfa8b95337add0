import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { BatonError } from "../../../src/index.ts";
import { openSqs } from "../../../src/relay/sources/sqs/sqs-source.ts";
import { never, now, receiveOne, textOf } from "./received.ts";
import { openSqsDesk, REGION, type SqsDesk, sqsSourceOf } from "./sqs-desk.ts";
import { playInTime } from "../../kit/lateness.ts";

/** Holds of a few seconds are kept, and end, as they should where timers are no later than this. */
const MOST_LATE_MS = 100;

describe("SQS", { concurrency: 6 }, () => {
  let desk: SqsDesk & AsyncDisposable;
  before(async () => {
    desk = await openSqsDesk();
  });
  after(() => desk[Symbol.asyncDispose]());

  test("a message arrives with its id, attributes, attempt and time, and is gone when acknowledged", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    const id = desk.send(settings.queue, "déjà vu", {
      messageAttributes: {
        colour: { DataType: "String", StringValue: "red" },
        "Content-Type": { DataType: "String", StringValue: "text/markdown" },
      },
    });
    const message = await receiveOne(source);
    assert.equal(message.id, id);
    assert.equal(textOf(message), "déjà vu");
    assert.equal(message.attributes["colour"], "red");
    assert.equal(message.attributes["AWS.ApproximateReceiveCount"], "1");
    assert.equal(message.contentType, "text/markdown");
    assert.equal(message.attempt, 1);
    assert.equal(message.key, undefined);
    assert.ok(Math.abs((message.sentAt ?? 0) - Date.now()) < 60_000);
    await message.acknowledge();
    assert.deepEqual(desk.counts(settings.queue), { ready: 0, hidden: 0 });
  });

  test("a group of a standard queue is no key: SQS neither orders it nor keeps it to one at a time", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    desk.send(settings.queue, "fair", { messageGroupId: "tenant" });
    assert.equal((await receiveOne(source)).key, undefined);
  });

  test("a waiting receive is answered by an arrival", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    const waiting = receiveOne(source);
    assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
    desk.send(settings.queue, "late");
    assert.equal(textOf(await waiting), "late");
  });

  test("a queue is found by its URL", async (t) => {
    const settings = desk.queue();
    const url = desk.server.inspectQueue(settings.queue)?.url ?? "";
    const source = await sqsSourceOf(t, { ...settings, queue: url, region: undefined });
    desk.send(settings.queue, "by url");
    assert.equal(textOf(await receiveOne(source)), "by url");
  });

  test("a try takes as many as are asked for, and never more", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    for (let index = 0; index < 8; index += 1) desk.send(settings.queue, String(index));
    const messages = await source.receive({ max: 3, signal: now });
    assert.equal(messages.length, 3);
    assert.deepEqual(desk.counts(settings.queue), { ready: 5, hidden: 3 });
  });

  test("many waiting receives get one message each", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    const waiting = Array.from({ length: 12 }, () => receiveOne(source));
    for (let index = 0; index < 14; index += 1) desk.send(settings.queue, String(index));
    const texts = (await Promise.all(waiting)).map(textOf);
    assert.equal(new Set(texts).size, 12);
    assert.equal(desk.counts(settings.queue).ready, 2);
  });

  test("a poll that nobody waits for any more is adopted by the next receive", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    const gone = new AbortController();
    // The first request takes longest; the poll must be under way before the message is sent.
    await source.receive({ max: 1, signal: now });
    const first = source.receive({ max: 1, signal: gone.signal });
    await sleep(200);
    gone.abort();
    assert.deepEqual(await first, []);
    desk.send(settings.queue, "raced");
    const message = await receiveOne(source);
    assert.equal(textOf(message), "raced");
    assert.equal(message.attempt, 1);
  });

  test("what such a poll brings to nobody is visible again at once, not after its visibility timeout", async (t) => {
    const settings = { ...desk.queue(), visibilityMs: 600_000 };
    const source = await sqsSourceOf(t, settings);
    const other = await sqsSourceOf(t, settings);
    const gone = new AbortController();
    // The first request takes longest; the poll must be under way before the message is sent.
    await source.receive({ max: 1, signal: now });
    const first = source.receive({ max: 1, signal: gone.signal });
    await sleep(200);
    gone.abort();
    await first;
    desk.send(settings.queue, "raced");
    await sleep(50);
    const message = await receiveOne(other);
    assert.equal(textOf(message), "raced");
    assert.ok((message.attempt ?? 0) <= 2);
  });

  test("what an open poll brings while the source is closed goes back", async () => {
    const settings = { ...desk.queue(), visibilityMs: 600_000 };
    const source = await openSqs(settings);
    const gone = new AbortController();
    // The first request takes longest; the poll must be under way before the message is sent.
    await source.receive({ max: 1, signal: now });
    const first = source.receive({ max: 1, signal: gone.signal });
    await sleep(200);
    gone.abort();
    await first;
    const closed = source.close();
    desk.send(settings.queue, "at the last moment");
    await closed;
    assert.deepEqual(desk.counts(settings.queue), { ready: 1, hidden: 0 });
    await assert.rejects(source.receive({ max: 1, signal: never }), { code: "CLOSED" });
  });

  test("a message that is extended stays with its holder, and one that is not is lost in time", async (t) => {
    await playInTime(MOST_LATE_MS, async () => {
      const settings = { ...desk.queue(), visibilityMs: 4_000 };
      const source = await sqsSourceOf(t, settings);
      desk.send(settings.queue, "long");
      const message = await receiveOne(source);
      for (let round = 0; round < 4; round += 1) {
        await sleep(1_300);
        await message.extend();
      }
      assert.equal(message.lost.aborted, false, "the message is still held");
      await new Promise((resolve) => {
        message.lost.addEventListener("abort", resolve);
      });
      assert.equal(desk.counts(settings.queue).ready, 0, "it was lost here before the queue shows it to others");
      await assert.rejects(message.acknowledge(), { code: "LEASE_LOST" });
      const again = await receiveOne(source);
      assert.equal(again.attempt, 2);
      await assert.rejects(message.giveBack({ delayMs: 0, countAttempt: true }), { code: "LEASE_LOST" });
      await again.acknowledge();
    });
  });

  test("a message whose receipt SQS does not know any more is lost", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    desk.send(settings.queue, "gone");
    const message = await receiveOne(source);
    await desk.deleteHidden(settings.queue);
    await assert.rejects(message.extend(), { code: "LEASE_LOST" });
    assert.equal(message.lost.aborted, true, "the message is told to be lost");
  });

  test("a message that is given back comes again after its delay, with the next attempt", async (t) => {
    await playInTime(MOST_LATE_MS, async () => {
      const settings = desk.queue();
      const source = await sqsSourceOf(t, settings);
      desk.send(settings.queue, "again");
      await (await receiveOne(source)).giveBack({ delayMs: 0, countAttempt: true });
      const second = await receiveOne(source);
      assert.equal(second.attempt, 2);
      await second.giveBack({ delayMs: 900, countAttempt: true });
      assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
      assert.equal((await receiveOne(source)).attempt, 3);
    });
  });

  test("a message that went back untried has the number that it had, however often polls brought it", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    desk.send(settings.queue, "innocent");
    for (let round = 0; round < 4; round += 1) {
      const message = await receiveOne(source);
      assert.equal(message.attempt, 1);
      await message.giveBack({ delayMs: 0, countAttempt: false });
    }
    await (await receiveOne(source)).giveBack({ delayMs: 0, countAttempt: true });
    const again = await receiveOne(source);
    assert.equal(again.attempt, 2);
    assert.equal(again.attributes["AWS.ApproximateReceiveCount"], "6");
  });

  test("FIFO: one message of a group at a time, in order, with the group as the key", async (t) => {
    const settings = desk.queue({ fifo: true });
    const source = await sqsSourceOf(t, settings);
    for (const [group, body] of [
      ["a", "a1"],
      ["a", "a2"],
      ["b", "b1"],
    ] as const) {
      desk.send(settings.queue, body, { messageGroupId: group });
    }
    const messages = await source.receive({ max: 10, signal: now });
    const found = new Map(messages.map((message) => [message.key, textOf(message)]));
    assert.equal(messages.length, 2);
    assert.deepEqual([found.get("a"), found.get("b")], ["a1", "b1"]);
    await Promise.all(messages.map((message) => message.acknowledge()));
    assert.equal(textOf(await receiveOne(source)), "a2");
  });

  test("a message that is given up goes to the queue of the redrive policy, with its reason", async (t) => {
    const dead = desk.queue();
    const arn = desk.server.inspectQueue(dead.queue)?.arn;
    const policy = JSON.stringify({ deadLetterTargetArn: arn, maxReceiveCount: 5 });
    const settings = desk.queue({ attributes: { RedrivePolicy: policy } });
    const source = await sqsSourceOf(t, settings);
    desk.send(settings.queue, "hopeless", { messageAttributes: { a: { DataType: "String", StringValue: "1" } } });
    const message = await receiveOne(source);
    assert.ok(message.bury !== undefined);
    await message.bury("it is \u0000 bad");
    const letter = await receiveOne(await sqsSourceOf(t, dead));
    assert.equal(textOf(letter), "hopeless");
    assert.equal(letter.attributes["a"], "1");
    assert.equal(letter.attributes["BatonReason"], "it is \ufffd bad");
    assert.deepEqual(desk.counts(settings.queue), { ready: 0, hidden: 0 });
  });

  test("a dead-letter queue can be named; a queue without one cannot bury", async (t) => {
    const dead = desk.queue();
    const settings = { ...desk.queue(), deadLetterQueue: dead.queue };
    const plain = desk.queue();
    desk.send(settings.queue, "one");
    desk.send(plain.queue, "two");
    const named = await receiveOne(await sqsSourceOf(t, settings));
    await named.bury?.("because");
    assert.equal(desk.counts(dead.queue).ready, 1);
    assert.equal((await receiveOne(await sqsSourceOf(t, plain))).bury, undefined);
  });

  test("many acknowledgements share requests", async (t) => {
    const settings = desk.queue();
    const source = await sqsSourceOf(t, settings);
    for (let index = 0; index < 30; index += 1) desk.send(settings.queue, String(index));
    const messages = [];
    while (messages.length < 30) messages.push(...(await source.receive({ max: 10, signal: now })));
    await Promise.all(messages.map((message) => message.acknowledge()));
    assert.deepEqual(desk.counts(settings.queue), { ready: 0, hidden: 0 });
  });

  test("a queue that does not exist, and an endpoint that nobody serves, are said with advice", async (t) => {
    const missing = await sqsSourceOf(t, { ...desk.queue(), name: "orders", queue: "nobody-made-it" });
    await assert.rejects(missing.receive({ max: 1, signal: never }), (error: unknown) => {
      assert.ok(error instanceof BatonError);
      assert.equal(error.code, "NOT_FOUND");
      assert.match(error.message, /orders \(nobody-made-it\).*Make the queue/s);
      return true;
    });
    const nowhere = await sqsSourceOf(t, { ...desk.queue(), region: REGION, endpoint: "http://127.0.0.1:9" });
    await assert.rejects(nowhere.receive({ max: 1, signal: now }), { code: "STORE_UNAVAILABLE" });
  });
});
