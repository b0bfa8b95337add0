import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { BatonError } from "../../../src/index.ts";
import { openPubsub } from "../../../src/relay/sources/pubsub/pubsub-source.ts";
import { openPubsubDesk, PROJECT, type PubsubDesk, pubsubSourceOf } from "./pubsub-desk.ts";
import { never, now, receiveOne, textOf } from "./received.ts";
import { playInTime } from "../../kit/lateness.ts";

/** Holds of a few seconds are kept, and end, as they should where timers are no later than this. */
const MOST_LATE_MS = 100;

describe("Pub/Sub", { concurrency: 6 }, () => {
  let desk: PubsubDesk & AsyncDisposable;
  before(async () => {
    desk = await openPubsubDesk();
  });
  after(() => desk[Symbol.asyncDispose]());

  test("a message arrives with its id, attributes and time, and is gone when acknowledged", async (t) => {
    const topic = await desk.topic();
    const settings = await desk.subscription(topic);
    const source = await pubsubSourceOf(t, settings);
    const id = await desk.publish(topic, "hello", { attributes: { colour: "red", "content-type": "text/markdown" } });
    const message = await receiveOne(source);
    assert.equal(message.id, id);
    assert.equal(textOf(message), "hello");
    assert.equal(message.attributes["colour"], "red");
    assert.equal(message.contentType, "text/markdown");
    assert.equal(message.key, undefined);
    assert.equal(message.attempt, undefined, "Pub/Sub does not count without a dead-letter policy");
    assert.ok(Math.abs((message.sentAt ?? 0) - Date.now()) < 60_000);
    assert.equal(message.holdMs, 10_000, "at first it has the subscription's own deadline");
    await message.extend();
    assert.equal(message.holdMs, 60_000);
    await message.acknowledge();
    assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
  });

  test("a media type that could not be a header is none", async (t) => {
    const topic = await desk.topic();
    const source = await pubsubSourceOf(t, await desk.subscription(topic));
    for (const type of ["text/x\ny: z", "text/☃", "text", "", "a b/c"]) {
      await desk.publish(topic, "x", { attributes: { "content-type": type } });
      const message = await receiveOne(source);
      assert.equal(message.contentType, undefined, type);
      await message.acknowledge();
    }
  });

  test("a check asks for the topic of the dead letters, too", async (t) => {
    const settings = await desk.subscription(await desk.topic());
    const source = await pubsubSourceOf(t, { ...settings, deadLetterTopic: await desk.topic() });
    await source.check?.();
    const missing = `projects/${PROJECT}/topics/no-letters`;
    const other = await pubsubSourceOf(t, { ...settings, deadLetterTopic: missing });
    await assert.rejects(async () => await other.check?.(), { code: "NOT_FOUND", message: /no-letters/ });
  });

  test("a waiting receive is answered by an arrival", async (t) => {
    const topic = await desk.topic();
    const source = await pubsubSourceOf(t, await desk.subscription(topic));
    const waiting = receiveOne(source);
    assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
    await desk.publish(topic, "late");
    assert.equal(textOf(await waiting), "late");
  });

  test("a try takes as many as are asked for, and never more", async (t) => {
    const topic = await desk.topic();
    const settings = await desk.subscription(topic);
    const source = await pubsubSourceOf(t, settings);
    assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
    for (let index = 0; index < 5; index += 1) await desk.publish(topic, String(index));
    const first = await source.receive({ max: 3, signal: now });
    const other = await pubsubSourceOf(t, settings);
    const rest = [...(await other.receive({ max: 1, signal: now })), ...(await other.receive({ max: 9, signal: now }))];
    assert.equal(first.length, 3);
    assert.equal(new Set([...first, ...rest].map(textOf)).size, 5);
    await Promise.all([...first, ...rest].map((message) => message.acknowledge()));
    assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
  });

  test("a pull that nobody waits for any more is adopted, and what it brings to nobody goes back at once", async (t) => {
    const topic = await desk.topic();
    const settings = { ...(await desk.subscription(topic)), ackDeadlineMs: 600_000 };
    const source = await pubsubSourceOf(t, settings);
    const other = await pubsubSourceOf(t, settings);
    await source.receive({ max: 1, signal: now });
    for (const receiver of [source, other]) {
      const gone = new AbortController();
      const waiting = source.receive({ max: 1, signal: gone.signal });
      await sleep(200);
      gone.abort();
      assert.deepEqual(await waiting, []);
      await desk.publish(topic, "raced");
      if (receiver === other) await sleep(100);
      const message = await receiveOne(receiver);
      assert.equal(textOf(message), "raced");
      await message.acknowledge();
    }
  });

  test("a message that is extended stays, and one that is not is lost in time", async (t) => {
    await playInTime(MOST_LATE_MS, async () => {
      const topic = await desk.topic();
      const settings = { ...(await desk.subscription(topic)), ackDeadlineMs: 4_000 };
      const source = await pubsubSourceOf(t, settings);
      await desk.publish(topic, "long");
      const message = await receiveOne(source);
      for (let round = 0; round < 4; round += 1) {
        await sleep(1_300);
        await message.extend();
      }
      assert.equal(message.lost.aborted, false, "the message is still held");
      assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
      await new Promise((resolve) => {
        message.lost.addEventListener("abort", resolve);
      });
      await assert.rejects(message.acknowledge(), { code: "LEASE_LOST" });
      const again = await receiveOne(source);
      assert.equal(textOf(again), "long");
      await again.acknowledge();
    });
  });

  test("a message that is given back comes again after its delay, with the next attempt", async (t) => {
    await playInTime(MOST_LATE_MS, async () => {
      const topic = await desk.topic();
      const settings = await desk.subscription(topic, { deadLetterTopic: await desk.topic() });
      const source = await pubsubSourceOf(t, settings);
      await desk.publish(topic, "again");
      const first = await receiveOne(source);
      assert.equal(first.attempt, 1);
      await first.giveBack({ delayMs: 0, countAttempt: true });
      const second = await receiveOne(source);
      assert.equal(second.attempt, 2);
      await second.giveBack({ delayMs: 900, countAttempt: true });
      assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
      assert.equal((await receiveOne(source)).attempt, 3);
    });
  });

  test("ordering keys: one message of a key at a time, in order", async (t) => {
    const topic = await desk.topic();
    const source = await pubsubSourceOf(t, await desk.subscription(topic, { isOrdered: true }));
    for (const [orderingKey, text] of [
      ["a", "a1"],
      ["a", "a2"],
      ["b", "b1"],
    ] as const) {
      await desk.publish(topic, text, { orderingKey });
    }
    const messages = await source.receive({ max: 10, signal: now });
    const found = new Map(messages.map((message) => [message.key, textOf(message)]));
    assert.equal(messages.length, 2);
    assert.deepEqual([found.get("a"), found.get("b")], ["a1", "b1"]);
    await Promise.all(messages.map((message) => message.acknowledge()));
    assert.equal(textOf(await receiveOne(source)), "a2");
  });

  test("a message that is given up goes to the topic of the policy, or to one that is named", async (t) => {
    const [topic, dead, named] = [await desk.topic(), await desk.topic(), await desk.topic()];
    const settings = await desk.subscription(topic, { deadLetterTopic: dead });
    const pairs = [
      [settings, await desk.subscription(dead)],
      [{ ...(await desk.subscription(topic)), deadLetterTopic: named }, await desk.subscription(named)],
    ] as const;
    await desk.publish(topic, "hopeless", { attributes: { a: "1" } });
    for (const [one, letters] of pairs) {
      const source = await pubsubSourceOf(t, one);
      await (await receiveOne(source)).bury?.("it is bad");
      const letter = await receiveOne(await pubsubSourceOf(t, letters));
      assert.equal(textOf(letter), "hopeless");
      assert.equal(letter.attributes["a"], "1");
      assert.equal(letter.attributes["BatonReason"], "it is bad");
      assert.deepEqual(await source.receive({ max: 1, signal: now }), []);
    }
    const plain = await pubsubSourceOf(t, await desk.subscription(topic));
    await desk.publish(topic, "two");
    assert.equal((await receiveOne(plain)).bury, undefined);
  });

  test("a subscription that does not exist, and an endpoint that nobody serves, are said with advice", async (t) => {
    const settings = {
      name: "orders",
      subscription: `projects/${PROJECT}/subscriptions/nobody-made-it`,
      endpoint: desk.address,
      ackDeadlineMs: 60_000,
      deadLetterTopic: undefined,
    };
    const missing = await pubsubSourceOf(t, settings);
    await assert.rejects(missing.receive({ max: 1, signal: never }), (error: unknown) => {
      assert.ok(error instanceof BatonError);
      assert.equal(error.code, "NOT_FOUND");
      assert.match(error.message, /orders \(projects.*Make it/s);
      return true;
    });
    const nowhere = await pubsubSourceOf(t, { ...settings, endpoint: "127.0.0.1:9" });
    await assert.rejects(nowhere.receive({ max: 1, signal: now }), { code: "STORE_UNAVAILABLE" });
  });

  test("closing breaks off a pull that brings nothing", async () => {
    const source = await openPubsub(await desk.subscription(await desk.topic()));
    const waiting = assert.rejects(source.receive({ max: 1, signal: never }), { code: "CLOSED" });
    await sleep(200);
    await source.close();
    await waiting;
  });
});
