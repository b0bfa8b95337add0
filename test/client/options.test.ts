import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { consulLocks } from "../../src/consul/index.ts";
import { memoryEngine } from "../../src/engines/memory/index.ts";
import { natsEngine, natsEngineOn, natsWake, natsWakeOn } from "../../src/engines/nats/index.ts";
import { postgresEngine, postgresEngineOn } from "../../src/engines/postgres/index.ts";
import { redisEngine, redisEngineOn, redisWake } from "../../src/engines/redis/index.ts";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import { type Baton, connect, type ErrorCode, InvalidInput, locksOnRegister, type Queue } from "../../src/index.ts";
import { batonSource, createRelay, openPubsub, openSqs, parseConfig } from "../../src/relay/index.ts";

interface Place {
  readonly baton: Baton;
  readonly queue: Queue<unknown>;
}

async function openPlace(context: TestContext): Promise<Place> {
  const baton = await connect("memory:");
  context.after(() => baton.close());
  return { baton, queue: baton.queue("cars") };
}

/** As a slip of the pen would, and as JavaScript lets it through. */
function slip(more: object = {}): never {
  return { ...more, nmae: 1 } as never;
}

async function refusalOf(call: () => unknown): Promise<InvalidInput> {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof InvalidInput, String(error));
    assert.equal(error.code, "INVALID_INPUT" satisfies ErrorCode);
    return error;
  }
  return assert.fail("It was accepted.");
}

/** What is accepted may wait for ever. */
const TIMEOUT_MS = 10_000;

const task = (): undefined => undefined;

describe("an option that there is not is refused, with its name, by", () => {
  const calls: Readonly<Record<string, (place: Place) => unknown>> = {
    connect: () => connect("memory:", slip()),
    "connect, with an engine": () => connect(memoryEngine(), slip()),
    queue: ({ baton }) => baton.queue("q", slip()),
    "queue, in retry": ({ baton }) => baton.queue("q", { retry: slip() }),
    "queue, in limits": ({ baton }) => baton.queue("q", { limits: slip() }),
    submit: ({ queue }) => queue.submit("key", 1, slip()),
    submitMany: ({ queue }) => queue.submitMany([slip({ key: "key", payload: 1 })]),
    work: ({ queue }) => queue.work(task, slip()),
    "work, in retry": ({ queue }) => queue.work(task, { retry: slip() }),
    take: ({ queue }) => queue.take(slip()),
    hold: ({ queue }) => queue.hold("key", slip()),
    keys: ({ queue }) => queue.keys(slip()),
    dead: ({ queue }) => queue.dead(slip()),
    outcome: async ({ queue }) => await (await queue.submit("key", 1, { id: "a" })).outcome(slip()),
    "worker.stop": ({ queue }) => queue.work(task).stop(slip()),
    close: ({ baton }) => baton.close(slip()),
    lock: ({ baton }) => baton.lock("l", slip()),
    withLock: ({ baton }) => baton.withLock("l", task, slip()),
    release: async ({ baton }) => await (await baton.lock("l")).release(slip()),
    session: ({ baton }) => baton.session(slip()),
    "session.lock": async ({ baton }) => await (await baton.session()).lock("l", slip()),
    "session.withLock": async ({ baton }) => await (await baton.session()).withLock("l", task, slip()),
    "session.close": async ({ baton }) => await (await baton.session()).close(slip()),
    elect: ({ baton }) => baton.elect("e", slip()),
    "election.observe": ({ baton }) => baton.elect("e").observe(slip()).next(),
    "election.stop": ({ baton }) => baton.elect("e").stop(slip()),
    each: ({ baton }) => baton.each(["t"], task, slip()),
    memoryEngine: () => memoryEngine(slip()),
    sqliteEngine: () => sqliteEngine(slip({ file: "x.db" })),
    natsEngine: () => natsEngine(slip({ servers: ["h"] })),
    "natsEngine, in tls": () => natsEngine({ servers: ["h"], tls: slip() }),
    "natsEngine, in store": () => natsEngine({ servers: ["h"], store: slip() }),
    natsEngineOn: () => natsEngineOn({} as never, slip()),
    natsWake: () => natsWake(slip({ servers: ["h"] })),
    natsWakeOn: () => natsWakeOn({ status: () => [] } as never, slip()),
    postgresEngine: () => postgresEngine(slip({ connection: "postgres://h/d" })),
    postgresEngineOn: () => postgresEngineOn({ options: { max: 10 } } as never, slip()),
    redisEngine: () => redisEngine(slip({ url: "redis://h" })),
    redisEngineOn: () => redisEngineOn({} as never, slip()),
    redisWake: () => redisWake("redis://h", slip()),
    consulLocks: () => consulLocks(slip()),
    "consulLocks, in tls": () => consulLocks({ tls: slip() }),
    locksOnRegister: () => locksOnRegister(slip()),
    createRelay: () => createRelay({ routes: [], keys: undefined, admin: undefined, graceMs: 0 }, slip()),
    "createRelay, in its settings": () => createRelay(slip({ routes: [], graceMs: 0 })),
    "createRelay, in a route": () => createRelay({ routes: [slip()], keys: undefined, admin: undefined, graceMs: 0 }),
    parseConfig: () => parseConfig({}, slip()),
    batonSource: () => batonSource(slip({ name: "s", store: "memory:", queue: "q" })),
    openSqs: () => openSqs(slip({ name: "s", queue: "q", visibilityMs: 1_000 })),
    openPubsub: () => openPubsub(slip({ name: "s", subscription: "projects/p/subscriptions/s", ackDeadlineMs: 1_000 })),
  };
  for (const [name, call] of Object.entries(calls)) {
    test(name, { timeout: TIMEOUT_MS }, async (context) => {
      const place = await openPlace(context);
      const { message } = await refusalOf(() => call(place));
      assert.match(
        message,
        /unknown option "([\w[\]]+\.)?nmae"; (did you mean "([\w[\]]+\.)?\w+"\?|known are .+\.) Nothing was done\./,
      );
    });
  }

  test("taken.retry", async (context) => {
    const { queue } = await openPlace(context);
    await queue.submit("key", 1);
    const [taken] = await queue.take();
    await refusalOf(() => taken?.retry("again", slip()));
    await taken?.done();
  });
});

describe("a parameter that there is not is refused in the URL of", () => {
  for (const url of [
    "memory:",
    "sqlite:x.db",
    "nats://127.0.0.1:1",
    "postgres://127.0.0.1:1/d",
    "redis://127.0.0.1:1",
    "consul://127.0.0.1:1",
  ]) {
    test(url, async () => {
      const { message } = await refusalOf(() => connect(`${url}?prefxi=x`));
      assert.match(message, /unknown parameter "prefxi"; /);
    });
  }

  test("memory:, which has no name either", async () => {
    await refusalOf(() => connect("memory:cars"));
    await (await connect("memory://")).close();
  });
});

describe("what cannot work is refused before anything is done:", () => {
  const calls: Readonly<Record<string, (place: Place) => unknown>> = {
    "a handler that is none": ({ queue }) => queue.work(undefined as never),
    "a handler in the place of options": ({ queue }) => queue.work({ concurrency: 2 } as never, task as never),
    "concurrency of NaN": ({ queue }) => queue.work(task, { concurrency: Number.NaN }),
    "concurrency of none": ({ queue }) => queue.work(task, { concurrency: 0 }),
    "concurrency as a text": ({ queue }) => queue.work(task, { concurrency: "4" as never }),
    "a negative timeout": ({ queue }) => queue.work(task, { timeout: -1 }),
    "untilEmpty as a text": ({ queue }) => queue.work(task, { untilEmpty: "no" as never }),
    "a negative lease": ({ queue }) => queue.take({ lease: -5 }),
    "a wait of NaN": ({ queue }) => queue.take({ wait: Number.NaN }),
    "a signal that is none": ({ queue }) => queue.take({ signal: new AbortController() as never }),
    "a signal that is none, for a hold": ({ queue }) => queue.hold("key", { signal: {} as never }),
    "a negative delay": ({ queue }) => queue.submit("key", 1, { delay: "-1s" }),
    "headers as a text": ({ queue }) => queue.submit("key", 1, { headers: "trace" as never }),
    "a type that is no text": ({ queue }) => queue.submit("key", 1, { type: 7 as never }),
    "many that are one": ({ queue }) => queue.submitMany({ key: "key", payload: 1 } as never),
    "an item that is none": ({ queue }) => queue.submitMany([undefined as never]),
    "ids that are one": ({ queue }) => queue.retryDead("order-17" as never),
    "leased as a text": ({ queue }) => queue.keys({ leased: "yes" as never }),
    "a negative timeout of an outcome": async ({ queue }) =>
      await (await queue.submit("key", 1, { id: "a" })).outcome({ timeout: -1 }),
    "a negative grace": ({ queue }) => queue.work(task).stop({ grace: -1 }),
    "a negative grace of close": ({ baton }) => baton.close({ grace: -1 }),
    "no work under a lock": ({ baton }) => baton.withLock("l", undefined as never),
    "no work under a session's lock": async ({ baton }) => await (await baton.session()).withLock("l", {} as never),
    "a lock's signal that is none": ({ baton }) => baton.lock("l", { signal: "stop" as never }),
    "slots of NaN": ({ baton }) => baton.lock("l", { slots: Number.NaN }),
    "nothing to lead": ({ baton }) => baton.elect("e").lead(undefined as never),
    "a negative rest": ({ baton }) => baton.elect("e", { rest: -1 }),
    "an election's signal that is none": ({ baton }) => baton.elect("e", { signal: {} as never }),
    "no work on tasks": ({ baton }) => baton.each(["a"], undefined as never),
    "a key that names no task": ({ baton }) => baton.each(["a"], task, { key: "a" as never }),
    "tasks of NaN at a time": ({ baton }) => baton.each(["a"], task, { concurrency: Number.NaN }),
    "a listener that is none": () => connect("memory:", { onEvent: "log" as never }),
    "a store that is a number": () => connect(5 as never),
    "a store that is null": () => connect(null as never),
    "a clock that is none": () => connect("memory:", { clock: {} as never }),
    "a wake that is none": () => connect("sqlite:x.db", { wake: 5 as never }),
    "a wake that carries nothing": () => connect("sqlite:x.db", { wake: {} as never }),
    "a wake's prefix that is no text": () => connect("sqlite:x.db", { wake: "memory:", wakePrefix: 5 as never }),
    "a wake's prefix without a wake": () => connect("sqlite:x.db", { wakePrefix: "app" }),
    "a wake's prefix with an engine": () => connect(memoryEngine(), { wakePrefix: "app" }),
    "limits of locks that there are not": () =>
      locksOnRegister({ name: "x", register: {} as never, newId: () => "x", limits: slip() }),
    "no servers": () => natsEngine({} as never),
    "no connection": () => postgresEngine({} as never),
    "a kind of commit that PostgreSQL does not have": () =>
      postgresEngine({ connection: "postgres://h/d", synchronousCommit: "off'; DROP SCHEMA x" as never }),
    "no URL": () => redisEngine({} as never),
    "no file": () => sqliteEngine({} as never),
  };
  for (const [name, call] of Object.entries(calls)) {
    test(name, { timeout: TIMEOUT_MS }, async (context) => {
      const place = await openPlace(context);
      await refusalOf(() => call(place));
      assert.deepEqual(await place.baton.locks(), [], "no lock was taken");
    });
  }

  test("progress that is no share, and the attempt is told why", async (context) => {
    const { queue } = await openPlace(context);
    await queue.submit("key", 1, { id: "a" });
    const worker = queue.work((_, lease) => lease.progress(0 / 0), { retry: { attempts: 1 }, untilEmpty: true });
    await worker.stopped;
    const [letter] = await queue.dead();
    assert.match(letter?.failure.message ?? "", /^progress: expected a number from 0 to 1; found NaN/);
  });
});

test("a timeout says its unit", async (context) => {
  const { queue } = await openPlace(context);
  const receipt = await queue.submit("key", 1, { id: "a" });
  for (const [timeout, said] of [
    [20, "20ms"],
    ["0.01s", "10ms"],
  ] as const) {
    await assert.rejects(receipt.outcome({ timeout }), {
      code: "OUTCOME_TIMEOUT",
      message: new RegExp(` within ${said}\\.`),
    });
  }
});

test("an election that was refused is not kept: closing does not wait for it", async (context) => {
  const { baton } = await openPlace(context);
  assert.throws(() => baton.elect("e", slip()), InvalidInput);
  await baton.close({ grace: "1h" });
});
