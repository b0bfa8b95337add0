/** An item that is submitted where a claim waits starts by the very write that brings it. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Engine, Grant } from "../../src/engine/port.ts";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import { until } from "../kit/until.ts";
import { NatsDesk, streamInfo, untilPulled } from "./desk.ts";
import { done, submit, take } from "./engine-calls.ts";

interface Stage {
  readonly engine: Engine;
  readonly other: Engine;
  /** How many messages were written to the stream so far. An item that is handed out by a consumer takes three, otherwise two. */
  readonly written: () => Promise<number>;
  /** Until the pulls of a claim stand at the server. */
  readonly pulled: () => Promise<void>;
}

/** What is open is closed while the server is still there, whatever came of it. */
function play(name: string, work: (stage: Stage) => Promise<void>): void {
  test(name, { timeout: 60_000 }, async (context) => {
    const { engine, other, written, pulled } = await begin(context);
    try {
      await work({ engine, other, written, pulled });
    } finally {
      await Promise.all([engine.close(), other.close()]);
    }
  });
}

async function begin(context: TestContext): Promise<Stage> {
  const { server } = await NatsDesk.withServer(context);
  const [engine, other] = [await openNatsUrl(server.url), await openNatsUrl(server.url)];
  for (const one of [engine, other]) await one.declare({ queue: "cars" });
  const written = async (): Promise<number> => (await streamInfo(server.port, "baton-cars")).state?.last_seq ?? 0;
  // The first makes the session known.
  await submit(engine, { key: "first" });
  await done(engine, await take(engine));
  return { engine, other, written, pulled: () => untilPulled(server.port) };
}

function names(grants: readonly Grant[]): readonly string[] {
  return grants.map(({ item }) => `${item.key} ${item.attempt}`);
}

play("no consumer has to hand it out, however long nothing was done before", async ({ engine, written, pulled }) => {
  const before = await written();
  // Longer than a sign of life is good for a new lease.
  for (const restMs of [0, 1_500, 0]) {
    const taking = take(engine);
    await pulled();
    await wait(restMs);
    await submit(engine, { key: `after ${restMs}` });
    const grants = await taking;
    assert.deepEqual(names(grants), [`after ${restMs} 1`]);
    const report = (await engine.queues({ queue: "cars" }))[0];
    assert.deepEqual([report?.waiting, report?.running], [0, 1]);
    await done(engine, grants);
  }
  assert.equal((await written()) - before, 6);
});

play(
  "as many as there are slots; the rest waits, and a key that is busy keeps its order",
  async ({ engine, pulled }) => {
    const taking = take(engine, { max: 2 });
    await pulled();
    await submit(engine, { key: "a" }, { key: "b" }, { key: "c" });
    const first = await taking;
    const grants = first.length === 2 ? first : [...first, ...(await take(engine))];
    assert.deepEqual(names(grants), ["a 1", "b 1"]);
    await submit(engine, { key: "a", headers: { place: "second" } });
    await done(engine, grants);
    const rest = [...(await take(engine)), ...(await take(engine))];
    assert.deepEqual(names(rest).toSorted(), ["a 1", "c 1"]);
    await done(engine, rest);
  },
);

play("one whose claim is taken back goes to others, untried", async ({ engine, other, pulled }) => {
  const giveUp = new AbortController();
  const taking = take(engine, { signal: giveUp.signal });
  await pulled();
  const submitting = submit(engine, { key: "a" });
  giveUp.abort();
  await submitting;
  assert.deepEqual(await taking, []);
  const grants = await take(other);
  assert.deepEqual(names(grants), ["a 1"]);
  await done(other, grants);
});

play("a pause that was heard of meanwhile holds for it, too", async ({ engine, other, pulled }) => {
  const taking = take(engine);
  await pulled();
  await other.pause({ queue: "cars", paused: true });
  await submit(engine, { key: "a" });
  await until(async () => {
    const report = (await other.queues({ queue: "cars" }))[0];
    return report?.waiting === 1 && report.running === 0;
  }, "it waits");
  await other.pause({ queue: "cars", paused: false });
  const grants = await taking;
  assert.deepEqual(names(grants), ["a 1"]);
  await done(engine, grants);
});

play("what is more urgent, and was accepted before, goes first", async ({ engine, other, pulled }) => {
  for (let round = 0; round < 20; round += 1) {
    const taking = take(engine);
    await pulled();
    await submit(other, { key: `urgent ${round}`, level: "high" });
    await submit(engine, { key: `usual ${round}` });
    const first = await taking;
    assert.deepEqual(names(first), [`urgent ${round} 1`]);
    await done(engine, first);
    const second = await take(engine);
    assert.deepEqual(names(second), [`usual ${round} 1`]);
    await done(engine, second);
  }
});
