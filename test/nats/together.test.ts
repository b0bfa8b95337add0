/** Writes that go together, amid faults. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { ask } from "../../servers/nats-probe.ts";
import { openConnection, wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { type Baton, connect } from "../../src/index.ts";
import { NatsDesk, streamInfo } from "./desk.ts";

const TIMEOUT = { timeout: 90_000 };
const LANES = 128;
const KILLS = 3;
const BETWEEN_MS = 400;

/** One whose writes go together. */
async function open(context: TestContext, url: string): Promise<Baton> {
  const connection = await openConnection({ servers: [url] });
  context.after(() => connection.close());
  const wire = wireOf(connection, true);
  return await connect(new NatsEngine({ wire, random: Math.random, options: { sync: "always" } }));
}

/** Submits with so many in flight until it is over; gives what was accepted. */
async function submitUntil(baton: Baton, isOver: () => boolean): Promise<readonly string[]> {
  const queue = baton.queue<number>("cars");
  const accepted: string[] = [];
  let count = 0;
  const lane = async (): Promise<void> => {
    while (!isOver()) {
      const key = `car ${(count += 1)}`;
      await queue.submit(key, count).then(
        () => accepted.push(key),
        () => undefined,
      );
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return accepted;
}

/** Whether the last write to the queue was one of a batch. */
async function isTogether(port: number): Promise<boolean> {
  const seq = (await streamInfo(port, "baton-cars")).state?.last_seq ?? 0;
  const answer = (await ask(port, "$JS.API.STREAM.MSG.GET.baton-cars", { seq })) as {
    readonly message?: { readonly hdrs?: string };
  };
  return Buffer.from(answer.message?.hdrs ?? "", "base64")
    .toString()
    .includes("Nats-Batch-Id");
}

async function workOff(baton: Baton, accepted: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const ran = new Map<string, number>();
  const left = new Set(accepted);
  const all = Promise.withResolvers<void>();
  const worker = baton.queue<number>("cars").work(
    ({ key }) => {
      ran.set(key, (ran.get(key) ?? 0) + 1);
      left.delete(key);
      if (left.size === 0) all.resolve();
    },
    { concurrency: 64 },
  );
  await all.promise;
  await worker.stop();
  return ran;
}

test("nothing that was accepted is lost when the server is killed amid batches", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context, { sync: "always" });
  await using baton = await open(context, server.url);
  let isOver = false;
  const submitting = submitUntil(baton, () => isOver);
  try {
    for (let kills = 0; kills < KILLS; kills += 1) {
      await wait(BETWEEN_MS);
      await server.kill();
      await server.restart();
    }
    await wait(BETWEEN_MS);
    assert.ok(await isTogether(server.port), "Writes go together");
  } finally {
    isOver = true;
  }
  const accepted = await submitting;
  context.diagnostic(`${accepted.length} accepted`);
  const ran = await workOff(baton, accepted);
  for (const key of accepted) assert.equal(ran.get(key), 1, key);
});
