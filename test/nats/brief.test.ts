/** Leases that last for a moment: their end is an acknowledgement, unless somebody has knocked. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { connect as connectNats, type NatsConnection } from "@nats-io/transport-node";
import { systemClock } from "../../src/domain/clock.ts";
import type { Engine, Grant } from "../../src/engine/port.ts";
import { wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { connect } from "../../src/index.ts";
import { leftInStream, NatsDesk, streamInfo } from "./desk.ts";
import { done, submit, take } from "./engine-calls.ts";

const TIMEOUT = { timeout: 60_000 };
const KEYS = 3_000;
/** A start, an acknowledgement, and what a machine that stands still makes go back. An end that is written is one more. */
const MOST_PER_ITEM = 2.9;
/** Longer than the server waits for an acknowledgement before it delivers again. */
const LONG_MS = 1_500;

/** An engine whose leases are brief from the first on. */
async function open(context: TestContext, url: string): Promise<Engine> {
  const { engine, connection } = await openBrief(url);
  context.after(() => engine.close());
  context.after(() => connection.close());
  return engine;
}

async function openBrief(url: string): Promise<{ readonly engine: Engine; readonly connection: NatsConnection }> {
  const connection = await connectNats({ servers: [url] });
  const wire = wireOf(connection, true);
  const engine = new NatsEngine({ wire, clock: systemClock, random: Math.random, briefAfter: 0 });
  await engine.declare({ queue: "cars" });
  return { engine, connection };
}

/** Started by a delivery: what is submitted beside a claim that waits starts otherwise. */
async function takeOne(engine: Engine, key: string): Promise<readonly Grant[]> {
  await submit(engine, { key });
  const grants = await take(engine);
  assert.deepEqual(
    grants.map(({ lease }) => lease.key),
    [key],
  );
  return grants;
}

async function counts(engine: Engine): Promise<object> {
  const [report] = await engine.queues({ queue: "cars" });
  return { running: report?.running, waiting: report?.waiting };
}

test("a worker that is quick needs two messages per item, and nothing is left", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  await using producer = await connect(server.url);
  const items = Array.from({ length: KEYS }, (_, index) => ({ key: `car ${index}`, payload: index }));
  await producer.queue<number>("cars").submitMany(items);
  const connection = await connectNats({ servers: [server.url] });
  context.after(() => connection.close());
  const engine = new NatsEngine({ wire: wireOf(connection, true), clock: systemClock, random: Math.random });
  await using baton = await connect(engine);
  const ran = new Map<string, number>();
  const all = Promise.withResolvers<void>();
  const before = connection.stats().outMsgs;
  const worker = baton.queue<number>("cars").work(
    ({ key }) => {
      ran.set(key, (ran.get(key) ?? 0) + 1);
      if (ran.size === KEYS) all.resolve();
    },
    { concurrency: 16 },
  );
  await all.promise;
  await worker.stop();
  const sent = (connection.stats().outMsgs - before) / KEYS;
  context.diagnostic(`${sent.toFixed(2)} messages per item`);
  assert.deepEqual(new Set(ran.values()), new Set([1]));
  assert.ok(sent < MOST_PER_ITEM, `${sent.toFixed(2)} messages per item`);
  // The worker's process lives on: what it has left is its own business.
  assert.equal(await leftInStream(server.port, "baton-cars", 5_000), 0);
});

test("an item that comes to such a key runs next, and the one before it once", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  const other = await open(context, server.url);
  const first = await takeOne(engine, "car");
  await submit(other, { key: "car", payload: { type: "text/plain", body: "second" } });
  await done(engine, first);
  const second = await take(engine);
  assert.equal(second[0]?.item?.payload.body, "second");
  assert.ok((second[0]?.lease.fence ?? 0) > (first[0]?.lease.fence ?? 0));
  await done(engine, second);
  assert.equal(await leftInStream(server.port, "baton-cars", 10_000), 0);
});

test("a key whose item is done can be used at once, before its record is cleared away", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  const other = await open(context, server.url);
  await done(engine, await takeOne(engine, "car"));
  assert.ok(((await streamInfo(server.port, "baton-cars")).state?.messages ?? 0) > 0);
  assert.deepEqual(await counts(other), { running: 0, waiting: 0 });
  assert.deepEqual(await other.keys({ queue: "cars", limit: 10 }), []);
  await submit(other, { key: "car", mode: "strict" });
  await done(other, await take(other));
  assert.equal(await leftInStream(server.port, "baton-cars", 10_000), 0);
});

test("one that lasts is nobody else's, though it is delivered again", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  const other = await open(context, server.url);
  const grants = await takeOne(engine, "car");
  assert.deepEqual(await counts(other), { running: 1, waiting: 0 });
  assert.deepEqual(await take(other, { signal: AbortSignal.timeout(LONG_MS) }), []);
  await done(engine, grants);
  assert.equal(await leftInStream(server.port, "baton-cars", 10_000), 0);
});

test("one that fails, or is given back, runs again", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  const [grant] = await takeOne(engine, "car");
  assert.ok(grant !== undefined);
  const failure = { message: "no paint" };
  await engine.settle([{ lease: grant.lease, ending: { type: "retry", delayMs: 0, place: "keep", failure } }]);
  const [second] = await take(engine);
  assert.ok(second !== undefined);
  assert.equal(second.item?.attempt, 2);
  await engine.settle([{ lease: second.lease, ending: { type: "release" } }]);
  const third = await take(engine);
  assert.equal(third[0]?.item?.attempt, 2);
  await done(engine, third);
  assert.equal(await leftInStream(server.port, "baton-cars", 10_000), 0);
});

test("a holder that is told of a cancel, and what a hold waits for", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  const other = await open(context, server.url);
  const [grant] = await takeOne(engine, "car");
  assert.ok(grant !== undefined);
  assert.equal(await other.cancel({ queue: "cars", id: grant.item?.id ?? "" }), "requested");
  const holding = other.hold({
    queue: "cars",
    key: "car",
    worker: "holder",
    leaseMs: 5_000,
    signal: AbortSignal.timeout(20_000),
  });
  await wait(100);
  await engine.settle([{ lease: grant.lease, ending: { type: "done" } }]);
  const held = await holding;
  assert.ok(held !== undefined && held.fence > grant.lease.fence);
  await other.settle([{ lease: held, ending: { type: "release" } }]);
  assert.equal(await leftInStream(server.port, "baton-cars", 10_000), 0);
});

test("what a process that died had for a moment, or had done, is cleared up by others", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const { engine, connection } = await openBrief(server.url);
  const leaseMs = 1_000;
  await submit(engine, { key: "done" }, { key: "begun" });
  const grants = [...(await take(engine, { max: 2, leaseMs }))];
  while (grants.length < 2) grants.push(...(await take(engine, { max: 1, leaseMs })));
  await done(
    engine,
    grants.filter(({ lease }) => lease.key === "done"),
  );
  await connection.close();
  const other = await open(context, server.url);
  const again = await take(other, { leaseMs });
  assert.deepEqual(
    again.map(({ lease, item }) => [lease.key, item?.attempt]),
    [["begun", 2]],
  );
  await done(other, again);
  assert.equal(await leftInStream(server.port, "baton-cars", 20_000), 0);
  await engine.close().catch(() => undefined);
});
