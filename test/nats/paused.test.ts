/**
 * A queue that is paused stays so, and one that goes on does, though its consumers are made anew meanwhile. Whoever makes one has read before
 * whether the queue is paused, and may be slow.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { connect as connectNats } from "@nats-io/transport-node";
import { ask } from "../../servers/nats-probe.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import type { Wire } from "../../src/engines/nats/wire.ts";
import { until } from "../kit/until.ts";
import { NatsDesk } from "./desk.ts";

const TIMEOUT = { timeout: 60_000 };
const CONSUMER = "baton-cars.ready-1";
const RECORD = "baton.c.queue.cars";

test("one that is paused while a slow process makes its consumer anew", TIMEOUT, async (context) => {
  const { port, paused, slow } = await withSlow(context, `$JS.API.CONSUMER.INFO.${CONSUMER}`);
  const declared = slow.engine.declare({ queue: "cars" });
  await slow.isHeld;
  await paused(true);
  await ask(port, `$JS.API.CONSUMER.DELETE.${CONSUMER}`);
  slow.goOn();
  await declared;
  assert.equal(await isPaused(port), true);
});

test("one that is resumed while a slow process makes its consumer anew", TIMEOUT, async (context) => {
  const { port, paused, slow } = await withSlow(context, `$JS.API.CONSUMER.INFO.${CONSUMER}`);
  await paused(true);
  const declared = slow.engine.declare({ queue: "cars" });
  await slow.isHeld;
  await paused(false);
  await ask(port, `$JS.API.CONSUMER.DELETE.${CONSUMER}`);
  slow.goOn();
  await declared;
  assert.equal(await isPaused(port), false);
});

test("one whose consumer is made anew by others while it is paused by a slow process", TIMEOUT, async (context) => {
  const { port, others, slow } = await withSlow(context, RECORD);
  await slow.engine.declare({ queue: "cars" });
  const pausing = slow.engine.pause({ queue: "cars", paused: true });
  await slow.isHeld;
  await ask(port, `$JS.API.CONSUMER.DELETE.${CONSUMER}`);
  await (await others()).queue("cars").levels();
  assert.equal(await isPaused(port), false, "nobody knows of it yet");
  slow.goOn();
  await pausing;
  assert.equal(await isPaused(port), true);
});

interface Slow {
  readonly engine: NatsEngine;
  readonly isHeld: Promise<void>;
  goOn(): void;
}

/** A queue that is in use, and a process whose first message to a subject is held back. */
async function withSlow(context: TestContext, subject: string) {
  const { desk, server } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  const cars = baton.queue("cars");
  await cars.levels();
  const wire = wireOf(await connectNats({ servers: [server.url] }), true);
  const held = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  let isFirst = true;
  const slowWire: Wire = {
    ...wire,
    server: wire.server,
    publish: (to, data, options) => {
      if (to !== subject || !isFirst) return wire.publish(to, data, options);
      isFirst = false;
      held.resolve();
      void free.promise.then(() => wire.publish(to, data, options));
    },
  };
  const engine = new NatsEngine({ wire: slowWire, clock: systemClock, random: Math.random });
  context.after(() => engine.close());
  const slow: Slow = { engine, isHeld: held.promise, goOn: () => free.resolve() };
  const paused = (isIt: boolean): Promise<void> => (isIt ? cars.pause() : cars.resume());
  return { port: server.port, paused, slow, others: () => desk.connect() };
}

/** As soon as there is one. */
async function isPaused(port: number): Promise<boolean> {
  return await until(async () => {
    const info = (await ask(port, `$JS.API.CONSUMER.INFO.${CONSUMER}`)) as {
      readonly created?: string;
      readonly paused?: boolean;
    };
    return info.created === undefined ? undefined : { paused: info.paused === true };
  }, "the consumer").then(({ paused }) => paused);
}
