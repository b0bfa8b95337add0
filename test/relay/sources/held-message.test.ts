/** A message between a queue and whoever works on it: what it asks the queue for, and when it counts as lost. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HeldMessage, type MessageQueue } from "../../../src/relay/sources/polling/held-message.ts";
import { Untried } from "../../../src/relay/sources/polling/untried.ts";
import { MessageLost } from "../../../src/relay/sources/polling/hold.ts";

function stage(queue: Partial<MessageQueue> = {}, firstHoldMs = 30_000): { message: HeldMessage; told: string[] } {
  const told: string[] = [];
  const message = new HeldMessage({
    source: "orders",
    id: "m1",
    data: new Uint8Array(),
    attributes: {},
    key: undefined,
    attempt: 1,
    untried: new Untried(),
    sentAt: undefined,
    firstHoldMs,
    holdMs: 600_000,
    queue: {
      longestHoldMs: 12 * 3_600_000,
      longestDelayMs: 900_000,
      hide: (ms) => Promise.resolve(void told.push(`hide ${ms}`)),
      remove: () => Promise.resolve(void told.push("remove")),
      copyToDeadLetters: (reason) => Promise.resolve(void told.push(`copy ${reason}`)),
      ...queue,
    },
  });
  return { message, told };
}

describe("a held message", () => {
  test("has a short hold at first, and the configured one when it is extended", async () => {
    const { message, told } = stage();
    assert.equal(message.holdMs, 30_000);
    await message.extend();
    assert.equal(message.holdMs, 600_000);
    assert.deepEqual(told, ["hide 600000"]);
  });

  test("is lost when the queue allows no more time in all", async () => {
    const { message, told } = stage({ longestHoldMs: 1_500 });
    await assert.rejects(message.extend(), { code: "LEASE_LOST", message: /for as long as the queue allows/ });
    assert.equal(message.lost.aborted, true, "the message is told to be lost");
    assert.deepEqual(told, []);
  });

  test("is extended by no more than what is left", async () => {
    const { message } = stage({ longestHoldMs: 100_000 });
    await message.extend();
    assert.ok(message.holdMs < 99_001 && message.holdMs > 60_000, String(message.holdMs));
  });

  test("stays away for no longer than the queue can, and is settled once", async () => {
    const { message, told } = stage();
    await message.giveBack({ delayMs: 3_600_000, countAttempt: true });
    assert.deepEqual(told, ["hide 900000"]);
    await assert.rejects(message.acknowledge(), { code: "LEASE_LOST", message: /settled already/ });
    assert.equal(message.lost.aborted, false, "nobody is told to stop work that has ended");
  });

  test("is copied to the dead letters before it is removed", async () => {
    const { message, told } = stage();
    await message.bury?.("bad");
    assert.deepEqual(told, ["copy bad", "remove"]);
  });

  test("that could not be copied is not removed", async () => {
    const { message, told } = stage({ copyToDeadLetters: () => Promise.reject(new Error("full")) });
    assert.ok(message.bury !== undefined);
    await assert.rejects(message.bury("bad"), { message: "full" });
    assert.deepEqual(told, []);
  });

  test("may be told again what failed, and is lost only when the queue says so", async () => {
    let failures: Error[] = [new Error("away"), new MessageLost("orders", "m1", "its receipt is old")];
    const remove = (): Promise<void> => {
      const [next, ...rest] = failures;
      failures = rest;
      return next === undefined ? Promise.resolve() : Promise.reject(next);
    };
    const { message } = stage({ remove });
    await assert.rejects(message.acknowledge(), { message: "away" });
    assert.equal(message.lost.aborted, false, "the message is still held");
    await assert.rejects(message.acknowledge(), { code: "LEASE_LOST" });
    assert.equal(message.lost.aborted, true, "the message is told to be lost");
  });

  test("that nobody extends is lost before the queue shows it to others", async () => {
    const began = performance.now();
    const { message, told } = stage({}, 400);
    await new Promise<void>((resolve) => {
      // The timer of a hold does not keep a process alive.
      const alive = setInterval(() => undefined, 1_000);
      message.lost.addEventListener("abort", () => {
        clearInterval(alive);
        resolve();
      });
    });
    assert.equal(message.lost.aborted, true, "the message is told to be lost");
    assert.ok(performance.now() - began >= 290);
    await assert.rejects(message.extend(), { code: "LEASE_LOST", message: /its time is over/ });
    assert.deepEqual(told, []);
  });
});
