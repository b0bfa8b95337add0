/** What may go wrong while an item is started by the write that brings it. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { connect as connectNats } from "@nats-io/transport-node";
import type { NatsServer } from "../../servers/nats-server.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { BatonError } from "../../src/domain/errors.ts";
import type { Engine } from "../../src/engine/port.ts";
import { wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import type { Wire } from "../../src/engines/nats/wire.ts";
import { NatsDesk, untilPulled } from "./desk.ts";
import { done, submit, take } from "./engine-calls.ts";

const TIMEOUT = { timeout: 60_000 };
/** For what is on its way: nobody tells that nothing comes of it. */
const IDLE_MS = 100;

async function open(context: TestContext, url: string): Promise<Engine> {
  const engine = await openNatsUrl(url);
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  return engine;
}

async function openOver(context: TestContext, server: NatsServer, change: (wire: Wire) => Wire): Promise<Engine> {
  const connection = await connectNats({ servers: [server.url] });
  const wire = change(wireOf(connection, true));
  const engine = new NatsEngine({ wire, clock: systemClock, random: Math.random });
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  return engine;
}

test("what was sent back for one that does not start after all is asked for again", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const other = await open(context, server.url);
  let lateMs = 0;
  const engine = await openOver(context, server, (wire) => ({
    ...wire,
    publish: (...message) => {
      if (lateMs > 0 && message[0].includes(".s.run.")) setTimeout(() => wire.publish(...message), lateMs);
      else wire.publish(...message);
    },
  }));
  await submit(engine, { key: "first" });
  await done(engine, await take(engine));
  const taking = take(engine);
  await untilPulled(server.port);
  // It is on its way, and has the only slot, when another key comes; and it is refused, because its key is not idle.
  lateMs = IDLE_MS;
  const submitting = submit(engine, { key: "mine" });
  await other.pause({ queue: "cars", key: "mine", paused: true });
  await submit(other, { key: "theirs" });
  await submitting;
  lateMs = 0;
  const grants = await taking;
  assert.deepEqual(
    grants.map(({ item }) => item.key),
    ["theirs"],
  );
  await done(engine, grants);
  // While the server is still there.
  await Promise.all([engine.close(), other.close()]);
});

test("what is more urgent goes first, although its delivery comes late", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const other = await open(context, server.url);
  let lateMs = 0;
  const engine = await openOver(context, server, (wire) => ({
    ...wire,
    subscribe: (subject, receive) =>
      wire.subscribe(subject, (delivery) => {
        if (lateMs > 0 && delivery.subject.includes(".s.")) setTimeout(() => receive(delivery), lateMs);
        else receive(delivery);
      }),
  }));
  // It is looked for what is more urgent where such a thing was there of late.
  await submit(other, { key: "first", level: "high" });
  await done(engine, await take(engine));
  const taking = take(engine);
  await untilPulled(server.port);
  lateMs = IDLE_MS;
  await submit(other, { key: "urgent", level: "high" });
  await submit(engine, { key: "usual" });
  const first = await taking;
  const second = await take(engine);
  assert.deepEqual(
    [...first, ...second].map(({ item }) => `${item.key} ${item.attempt}`),
    ["urgent 1", "usual 1"],
  );
  await done(engine, [...first, ...second]);
  await Promise.all([engine.close(), other.close()]);
});

/** One that hears nothing of what is said about its queue, and of which it can be said that its connection was away. */
async function deafEngine(context: TestContext, server: NatsServer): Promise<{ engine: Engine; comeBack: () => void }> {
  const listeners: ((up: boolean) => void)[] = [];
  const engine = await openOver(context, server, (wire) => ({
    ...wire,
    subscribe: (subject, receive) =>
      wire.subscribe(subject, (delivery) => {
        if (!delivery.subject.endsWith(".queue.cars")) receive(delivery);
      }),
    watch(listener) {
      listeners.push(listener);
      wire.watch(listener);
    },
  }));
  const comeBack = (): void => {
    for (const up of [false, true]) for (const listener of listeners) listener(up);
  };
  return { engine, comeBack };
}

test("a pause that fell into a time without a connection holds", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const other = await open(context, server.url);
  const { engine, comeBack } = await deafEngine(context, server);
  await submit(engine, { key: "first" });
  await done(engine, await take(engine));
  const taking = take(engine);
  await untilPulled(server.port);
  await other.pause({ queue: "cars", paused: true });
  comeBack();
  await wait(IDLE_MS);
  await submit(engine, { key: "car1" });
  assert.deepEqual(await Promise.race([taking, wait(500, "nothing")]), "nothing");
  await other.pause({ queue: "cars", paused: false });
  comeBack();
  assert.deepEqual(
    (await taking).map(({ item }) => item.key),
    ["car1"],
  );
  await Promise.all([engine.close(), other.close()]);
});

test("who closes while a submission waits for the server lets it fail, and nothing else", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  context.after(() => process.off("unhandledRejection", note));
  await submit(engine, { key: "car1" });
  await server.kill();
  await wait(IDLE_MS);
  const submitting = submit(engine, { key: "car2" }).then(
    () => "accepted",
    (error: unknown) => (error instanceof BatonError ? error.code : error),
  );
  await engine.close();
  assert.match(String(await submitting), /^(CLOSED|OUTCOME_UNKNOWN|STORE_UNAVAILABLE)$/);
  await wait(IDLE_MS);
  assert.deepEqual(unhandled, []);
});
