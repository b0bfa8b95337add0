/** Replies to questions that change nothing are lost: they are asked again, and nobody is told that something may have happened. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startRedisServer } from "../../servers/redis-server.ts";
import { connect } from "../../src/index.ts";
import { LossyWay } from "../lossy-way.ts";

/** So often in a row. */
const TIMES = 2;

/** Resolves when so many replies to what is asked by this word were lost. */
async function loseRepliesTo(way: LossyWay, word: string, times: number): Promise<void> {
  for (let lost = 0; lost < times; lost += 1) await way.lose({ word, atOnce: true });
}

test("a look whose reply is lost is repeated", { timeout: 60_000 }, async (context) => {
  const server = await startRedisServer();
  context.after(() => server.stop());
  const way = await LossyWay.to(server.url);
  context.after(() => way.close());
  // The greeting has a SETINFO.
  const first = loseRepliesTo(way, "$4\r\nINFO", 1);
  await using baton = await connect(way.url);
  await first;
  const cars = baton.queue("cars");
  await cars.submit("car1", "paint", { id: "one" });
  for (const [word, look] of [
    ["report", () => cars.status()],
    ["find", () => cars.item("one")],
    ["SMEMBERS", () => baton.queues()],
  ] as const) {
    const lost = loseRepliesTo(way, word, TIMES);
    assert.ok((await look()) !== undefined);
    await lost;
  }
});
