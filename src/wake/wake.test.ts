import assert from "node:assert/strict";
import { test } from "node:test";
import { aftermath } from "../../test/manual-clock.ts";
import { Bed, wakeStage } from "../../test/wake/stage.ts";
import { LONGEST_TEXT } from "./port.ts";
import { Wake } from "./wake.ts";

/** Sleepers of every process but the first, who went to sleep after messages had begun to arrive. */
async function beds(wakes: readonly Wake[], asleep: number): Promise<readonly Bed[]> {
  for (const wake of wakes.slice(1)) wake.onWork("cars", new Bed(0));
  await aftermath();
  return wakes.slice(1).map((wake) => {
    const bed = new Bed(asleep);
    wake.onWork("cars", bed);
    return bed;
  });
}

function woken(all: readonly Bed[]): number {
  return all.reduce((sum, bed) => sum + bed.woken, 0);
}

test("work wakes as many in all processes together as there are pieces of it", async () => {
  const { wakes } = wakeStage(5);
  const asleep = await beds(wakes, 50);
  wakes[0]?.work("cars", 10);
  wakes[0]?.work("vans", 10);
  await aftermath();
  assert.equal(woken(asleep), 10);
  wakes[0]?.work("cars", 1);
  await aftermath();
  assert.equal(woken(asleep), 11);
});

test("a budget is for those who sleep: a process without any leaves it to the others", async () => {
  const { wakes } = wakeStage(3);
  const [busy, idle] = await beds(wakes, 1);
  if (busy !== undefined) busy.asleep = 0;
  if (idle !== undefined) idle.asleep = 5;
  wakes[0]?.work("cars", 3);
  await aftermath();
  assert.equal(busy?.woken, 0);
  assert.equal(idle?.woken, 3);
});

test("without a place for hints every process wakes, and none more of its sleepers than there is work", async () => {
  const { adapters, wakes } = wakeStage(4);
  for (const adapter of adapters) adapter.hints = undefined;
  const asleep = await beds(wakes, 50);
  wakes[0]?.work("cars", 4);
  await aftermath();
  assert.deepEqual(
    asleep.map((bed) => bed.woken),
    [4, 4, 4],
  );
});

test("what could not be added to the budget is announced to everybody", async () => {
  const { adapters, wakes } = wakeStage(3);
  const [sender] = adapters;
  if (sender !== undefined)
    sender.hints = { add: () => Promise.reject(new Error("too many at once")), take: async () => "empty" };
  const asleep = await beds(wakes, 50);
  wakes[0]?.work("cars", 2);
  await aftermath();
  assert.equal(woken(asleep), 4);
});

test("a budget that does not answer holds nobody up for long", async () => {
  const { clock, adapters, wakes } = wakeStage(2);
  const [, listener] = adapters;
  if (listener !== undefined) listener.hints = { add: async () => undefined, take: () => new Promise(() => undefined) };
  const [bed] = await beds(wakes, 3);
  wakes[0]?.work("cars", 3);
  await clock.pass(1_000);
  assert.equal(bed?.woken, 3);
});

test("what needs no budget does not wait for one that does not answer", async () => {
  const { adapters, wakes } = wakeStage(2);
  const [sender] = adapters;
  if (sender !== undefined) sender.hints = { add: () => new Promise(() => undefined), take: async () => "empty" };
  const heard: (readonly string[] | undefined)[] = [];
  wakes[1]?.onEnded("cars", (ids) => heard.push(ids));
  await aftermath();
  heard.length = 0;
  wakes[0]?.work("vans", 1);
  await aftermath();
  wakes[0]?.ended("cars", ["a"]);
  await aftermath();
  assert.deepEqual(heard, [["a"]]);
});

test("an empty budget and one that others are faster at leave sleepers asleep; a missing one wakes them", async () => {
  const { adapters, wakes } = wakeStage(2);
  const [, listener] = adapters;
  const results = ["conflict", "taken", "missing", "empty"] as const;
  let asked = 0;
  if (listener !== undefined)
    listener.hints = {
      add: async () => undefined,
      take: async () => {
        asked += 1;
        return results[asked - 1] ?? "taken";
      },
    };
  const [bed] = await beds(wakes, 50);
  wakes[0]?.work("cars", 10);
  await aftermath();
  assert.equal(asked, 4);
  assert.equal(bed?.woken, 2);
});

test("what may concern anybody wakes everybody", async () => {
  const { wakes } = wakeStage(3);
  const asleep = await beds(wakes, 5);
  const own = new Bed(2);
  wakes[0]?.onWork("cars", own);
  await aftermath();
  own.asleep = 2;
  wakes[0]?.stir("cars");
  await aftermath();
  assert.equal(woken(asleep), 10);
  assert.equal(own.woken, 4);
});

test("those who sleep in the sender's own process are woken without a message", async () => {
  const { adapters, wakes } = wakeStage(1);
  const bed = new Bed(0);
  wakes[0]?.onWork("cars", bed);
  await aftermath();
  bed.asleep = 3;
  wakes[0]?.work("cars", 2);
  await aftermath();
  assert.equal(bed.woken, 2);
  assert.equal(adapters[0]?.sent.length, 0);
  wakes[0]?.work("cars", 2);
  await aftermath();
  assert.equal(bed.woken, 3);
  assert.equal(adapters[0]?.sent.length, 1);
});

test("everything of one turn is one message per signal", async () => {
  const { adapters, wakes } = wakeStage(1);
  for (let number = 0; number < 100; number += 1) {
    wakes[0]?.work("cars", 1);
    wakes[0]?.ended("cars", [`id-${number}`]);
  }
  await aftermath();
  assert.deepEqual(adapters[0]?.sent.map(({ channel }) => channel).toSorted(), ["baton.ended", "baton.work"]);
});

test("outcomes and losses reach those who listen, here and elsewhere, once each", async () => {
  const { wakes } = wakeStage(2);
  const told: unknown[] = [];
  for (const wake of wakes) {
    wake.onEnded("cars", (ids) => told.push(ids ?? "look"));
    wake.onLost((lost) => told.push(lost));
  }
  await aftermath();
  assert.deepEqual(told.splice(0), ["look", "look"]);
  const lost = { queue: "cars", key: 'a key\u0001 with "signs"', fence: 7 };
  wakes[0]?.ended("cars", ["one", "two"]);
  wakes[0]?.ended("vans", ["three"]);
  wakes[0]?.lost(lost);
  await aftermath();
  assert.deepEqual(told, [["one", "two"], lost, ["one", "two"], lost]);
});

test("so many outcomes that naming them is not worth it are told as some", async () => {
  const { adapters, wakes } = wakeStage(2);
  const told: unknown[] = [];
  wakes[1]?.onEnded("cars", (ids) => told.push(ids));
  await aftermath();
  for (let number = 0; number < 10_000; number += 1) wakes[0]?.ended("cars", [`id-${number}`]);
  await aftermath();
  assert.deepEqual(told, [undefined, undefined]);
  assert.equal(adapters[0]?.sent.length, 1);
});

test("no text is longer than the carriers take", async () => {
  const { adapters, wakes } = wakeStage(1);
  const key = "\u0001".repeat(512);
  for (let fence = 1; fence < 100; fence += 1) {
    wakes[0]?.lost({ queue: "q".repeat(64), key, fence });
    wakes[0]?.ended("q".repeat(64), [`${fence}${"é".repeat(250)}`]);
  }
  await aftermath();
  assert.equal(
    adapters[0]?.sent.every(({ text }) => Buffer.byteLength(text) <= LONGEST_TEXT),
    true,
  );
});

test("a carrier that is down fails nobody; it is listened to when it is back, and everybody looks", async () => {
  const { clock, adapters, wakes } = wakeStage(2);
  for (const adapter of adapters) adapter.isDown = true;
  const bed = new Bed(2);
  wakes[1]?.onWork("cars", bed);
  wakes[0]?.work("cars", 1);
  await aftermath();
  assert.equal(bed.woken, 0);
  assert.match(wakes[1]?.report().trouble ?? "", /down/);
  for (const adapter of adapters) adapter.isDown = false;
  await clock.pass(20_000);
  assert.equal(bed.woken, 2);
  bed.asleep = 2;
  adapters[1]?.missed();
  assert.equal(bed.woken, 4);
});

test("a check says what carries the wakes, whether it has hints, and what is wrong with it now", async () => {
  const { adapters, wakes } = wakeStage(1);
  const [adapter] = adapters;
  const [wake] = wakes;
  assert.ok(adapter && wake);
  assert.partialDeepStrictEqual(await wake.check(), { severity: "ok", subject: "wakes" });
  assert.match((await wake.check()).detail, /with hints/);
  adapter.isDown = true;
  const { severity, detail, advice } = await wake.check();
  assert.equal(severity, "warning");
  assert.match(detail, /down/);
  assert.match(advice ?? "", /now and then/);
  adapter.isDown = false;
  assert.equal((await wake.check()).severity, "ok");
  assert.deepEqual(adapter.listening, []);
});

test("strange messages are nobody's business", async () => {
  const { adapters, wakes } = wakeStage(2);
  const [bed] = await beds(wakes, 1);
  const texts = ["", "null", "[", '["x"]', '["x", 1]', '["x", ["cars", "1"], ["cars", -1], [{}]]', "[[]]"];
  await adapters[0]?.publish(texts.map((text) => ({ channel: "baton.work", text })));
  await aftermath();
  assert.equal(bed?.woken, 0);
});

test("closing sends what was told before, and ends the subscriptions", async () => {
  const { adapters, wakes } = wakeStage(2);
  const [bed] = await beds(wakes, 1);
  wakes[0]?.work("cars", 1);
  await wakes[0]?.close();
  await aftermath();
  assert.equal(bed?.woken, 1);
  await wakes[1]?.close();
  assert.deepEqual(adapters[1]?.listening, []);
  wakes[0]?.work("cars", 1);
  await aftermath();
  assert.equal(adapters[0]?.sent.length, 1);
});

test("a prefix is a few words", () => {
  const { adapters } = wakeStage(1);
  const [adapter] = adapters;
  assert.ok(adapter);
  for (const prefix of ["", "a b", "a.", "*", "a.>"])
    assert.throws(() => new Wake(adapter, { prefix }), { code: "INVALID_INPUT" });
});
