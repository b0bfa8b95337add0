import assert from "node:assert/strict";
import { test } from "node:test";
import { redisWake } from "../../src/engines/redis/index.ts";
import { until } from "../kit/until.ts";
import { RedisDesk } from "./desk.ts";

test("wakes reach all who listen, through a cut connection too", { timeout: 30_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context);
  const [one, other] = [await redisWake(desk.url), await redisWake(desk.url)];
  context.after(() => Promise.all([one.close(), other.close()]));
  const heard: string[] = [];
  let missed = 0;
  const stop = await one.listen(
    "work.cars",
    (text) => heard.push(text),
    () => (missed += 1),
  );
  await other.publish([
    { channel: "work.cars", text: "3" },
    { channel: "work.boats", text: "1" },
  ]);
  await until(() => heard.length === 1, "a wake");
  await desk.command("CLIENT", "KILL", "TYPE", "pubsub");
  await until(() => missed > 0, "the loss is known");
  await other.publish([{ channel: "work.cars", text: "4" }]);
  await until(() => heard.length === 2, "another wake");
  assert.deepEqual(heard, ["3", "4"]);
  await stop();
});

test("a budget is taken once by each, and never twice", async (context) => {
  const desk = await RedisDesk.withServer(context);
  const [one, other] = [await redisWake(desk.url), await redisWake(desk.url)];
  context.after(() => Promise.all([one.close(), other.close()]));
  assert.ok(one.hints !== undefined && other.hints !== undefined);
  assert.equal(await one.hints.take("cars"), "missing");
  await one.hints.add("cars", 5);
  const { hints } = one;
  const { hints: others } = other;
  const taken = await Promise.all(
    Array.from({ length: 12 }, (_, index) => (index % 2 === 0 ? hints : others).take("cars")),
  );
  assert.equal(taken.filter((result) => result === "taken").length, 5);
  assert.equal(taken.filter((result) => result === "empty").length, 7);
  assert.ok(Number(await desk.command("PTTL", "baton:hint:cars")) > 50_000);
});
