/** What happens to servers and connections, and what users hear of it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createClient, ErrorReply } from "@redis/client";
import { startRedisServer } from "../../servers/redis-server.ts";
import { redisEngineOn, redisWake } from "../../src/engines/redis/index.ts";
import { refuseUnfit } from "../../src/engines/redis/server-facts.ts";
import { type Baton, connect } from "../../src/index.ts";
import { until } from "../kit/until.ts";
import { RedisDesk, refusal } from "./desk.ts";

const ITEMS = 300;
const KEYS = 20;
const SOON_MS = 20_000;

/**
 * Works through items of a few keys while something is done to the server, and checks that each ran, in its order. Leases are so long that
 * nothing may wait for one to run out: what was granted in a reply that was lost comes back at once.
 */
async function workThrough(baton: Baton, trouble: (round: number) => Promise<void>): Promise<void> {
  const cars = baton.queue<number>("cars", { lease: "5m", retry: { attempts: 50 }, limits: { perKey: ITEMS } });
  const submitted = Array.from({ length: ITEMS }, (_, index) => ({
    key: `car${index % KEYS}`,
    payload: index,
    id: `item${index}`,
  }));
  await cars.submitMany(submitted);
  const done = new Map<number, number>();
  const order = new Map<string, number>();
  const overtaken: string[] = [];
  const worker = cars.work(
    ({ key, payload }) => {
      if (!done.has(payload) && (order.get(key) ?? -1) > payload) overtaken.push(`${key}: ${payload}`);
      order.set(key, Math.max(payload, order.get(key) ?? -1));
      done.set(payload, (done.get(payload) ?? 0) + 1);
      return new Promise<void>((resolve) => setTimeout(resolve, 5));
    },
    { concurrency: 8 },
  );
  for (let round = 1; round <= 3; round += 1) {
    await until(() => done.size >= (ITEMS * round) / 5, `a share of the work, round ${round}`);
    await trouble(round);
  }
  await until(async () => {
    const { waiting, running } = await cars.status();
    return done.size === ITEMS && waiting + running === 0;
  }, "all items done");
  await worker.stop();
  assert.deepEqual(overtaken, [], "Items that were overtaken");
}

describe("work goes on", { concurrency: 3 }, () => {
  test("when the server is killed and started again", { timeout: 60_000 }, async (context) => {
    const desk = await RedisDesk.withServer(context);
    await workThrough(await desk.connect(), async () => {
      await desk.server.kill();
      await desk.server.restart();
    });
  });

  test("when the server forgets its scripts", { timeout: 60_000 }, async (context) => {
    const desk = await RedisDesk.withServer(context);
    await workThrough(await desk.connect(), async () => void (await desk.command("SCRIPT", "FLUSH")));
  });

  test("when connections are cut", { timeout: 60_000 }, async (context) => {
    const desk = await RedisDesk.withServer(context);
    await workThrough(await desk.connect(), async () => {
      await desk.command("CLIENT", "KILL", "TYPE", "normal");
      await desk.command("CLIENT", "KILL", "TYPE", "pubsub");
    });
  });
});

test("whoever sleeps is woken after its listening connection was cut", { timeout: 30_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context);
  const cars = (await desk.connect()).queue("cars");
  const others = (await desk.connect()).queue("cars");
  const began: string[] = [];
  cars.work(({ key }) => void began.push(key));
  await others.submit("first", null);
  await until(() => began.includes("first"), "the first item");
  await desk.command("CLIENT", "KILL", "TYPE", "pubsub");
  await others.submit("second", null);
  await until(() => began.includes("second"), "the second item");
});

test("a server that is full refuses new work and lets work end", { timeout: 30_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context, { settings: { maxmemory: "0" } });
  const baton = await desk.connect();
  const cars = baton.queue<string>("cars");
  for (const key of ["a", "b", "c"]) await cars.submit(key, "x");
  await desk.command("CONFIG", "SET", "maxmemory", "1");
  const { code, message } = await refusal(cars.submit("d", "x"));
  assert.equal(code, "STORE_FULL");
  assert.match(message, /no memory.*not accepted.*maxmemory/);
  // A process that begins now.
  const late = await desk.connect();
  const lateCars = late.queue<string>("cars");
  assert.equal((await lateCars.status()).waiting, 3);
  const { code: newCode, message: newMessage } = await refusal(late.queue("vans").status());
  assert.equal(newCode, "STORE_FULL");
  assert.match(newMessage, /no memory.*[Nn]othing was done/);
  assert.doesNotMatch(newMessage, /not accepted/);
  const done: string[] = [];
  const worker = lateCars.work(
    async ({ key }, lease) => {
      lease.progress(0.5);
      await new Promise((resolve) => setTimeout(resolve, 300));
      lease.check();
      done.push(key);
    },
    { concurrency: 1 },
  );
  await until(async () => (await cars.status()).waiting === 0 && done.length === 3, "all work done");
  await worker.stop();
  assert.deepEqual(done, ["a", "b", "c"]);
  await desk.command("CONFIG", "SET", "maxmemory", "0");
  await cars.submit("d", "x");
});

test("a server that evicts is refused, and one that is away is named", { timeout: 30_000 }, async () => {
  const server = await startRedisServer({ settings: { maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" } });
  const { message } = await refusal(connect(server.url));
  assert.match(message, /allkeys-lru.*throw away.*noeviction/);
  await server.stop();
  const { code, message: away } = await refusal(connect(server.url));
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.match(away, /cannot be reached.*Nothing was done/);
});

test("a URL that cannot work is refused with what to put right in it", { timeout: 30_000 }, async (context) => {
  const { url } = await RedisDesk.withServer(context);
  const { message: stranger } = await refusal(connect(url.replace("redis://", "redis://ada:secret@")));
  assert.match(stranger, /does not know this user, or the password is wrong: WRONGPASS [^.]*\. Nothing was done/);
  assert.doesNotMatch(stranger, /secret/);
  const { message: database } = await refusal(connect(`${url}/99`));
  assert.match(database, /refuses database 99 .*Nothing was done\. Name another number/);
  const { code, message: file } = await refusal(connect(`${url}?ca=/nowhere.pem`));
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.match(file, /ca file \/nowhere\.pem could not be read .*Nothing was done/);
});

test("what is asked for while the server is away fails in time, and says that nothing was done", async (context) => {
  const desk = await RedisDesk.withServer(context);
  const cars = (await desk.connect()).queue("cars");
  await cars.submit("car1", null);
  await desk.server.kill();
  const { code } = await refusal(cars.submit("car2", null));
  assert.ok(code === "STORE_UNAVAILABLE" || code === "OUTCOME_UNKNOWN");
  assert.equal((await refusal(cars.submit("car3", null))).code, "STORE_UNAVAILABLE");
  await desk.server.restart();
  await cars.submit("car4", null);
  const { waiting } = await cars.status();
  assert.ok(waiting === 2 || code === "OUTCOME_UNKNOWN");
});

test("whoever closes while the server is away does not wait for it", { timeout: 60_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context);
  const baton = await connect(desk.url);
  const cars = baton.queue("cars");
  await cars.submit("car1", null);
  await desk.server.kill();
  // Its worker has nobody to connect to who would tell it of work.
  const worker = cars.work(() => undefined);
  await wait(200);
  const closed = worker.stop().then(() => baton.close());
  assert.equal(await Promise.race([closed, wait(SOON_MS, "still open", { ref: false })]), undefined);
});

test("wakes over a server that is away are closed too", { timeout: 60_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context);
  const adapter = await redisWake(desk.url);
  await desk.server.kill();
  const listening = adapter
    .listen(
      "work",
      () => undefined,
      () => undefined,
    )
    .catch(() => "ended");
  await wait(200);
  await adapter.close();
  assert.equal(await Promise.race([listening, wait(SOON_MS, "still connecting", { ref: false })]), "ended");
});

test("what is refused for a moment is not overtaken by what was submitted after it", async (context) => {
  const desk = await RedisDesk.withServer(context);
  const client = createClient({ url: desk.url });
  await client.connect();
  context.after(() => client.destroy());
  let refusals = 0;
  const send = client.sendCommand.bind(client);
  Reflect.set(client, "sendCommand", async (...given: Parameters<typeof send>): Promise<unknown> => {
    if (refusals === 0 || given[0][0] !== "EVALSHA") return await send(...given);
    refusals -= 1;
    throw new ErrorReply("LOADING Redis is loading the dataset in memory");
  });
  const baton = await connect(await redisEngineOn(client));
  context.after(() => baton.close({ grace: 0 }));
  const cars = baton.queue<number>("cars");
  await cars.submit("other", -1);
  const numbers = Array.from({ length: 768 }, (_, number) => number);
  refusals = 1;
  await cars.submitMany(numbers.map((number) => ({ key: "car1", payload: number })));
  assert.equal(refusals, 0);
  const seen: number[] = [];
  cars.work(({ key, payload }) => void (key === "car1" && seen.push(payload)), { concurrency: 2 });
  await until(() => seen.length >= numbers.length, "all items");
  assert.deepEqual(seen, numbers);
});

test("a server of another version is refused by name of what was found and what is needed", () => {
  const old = { product: "Redis", version: "6.2.14", values: new Map<string, string>() };
  assert.throws(() => refuseUnfit(old), /Redis 6\.2\.14.*needs Redis 7/);
  refuseUnfit({ product: "Valkey", version: "8.0.1", values: new Map<string, string>() });
});

test("a client of the application's is left open", async (context) => {
  const desk = await RedisDesk.withServer(context);
  const client = createClient({ url: desk.url });
  await client.connect();
  context.after(() => client.destroy());
  const baton = await connect(await redisEngineOn(client));
  await baton.queue("cars").submit("car1", { do: "paint" });
  await baton.close();
  assert.equal(await client.ping(), "PONG");
});

test("the check says how durable the store is", async (context) => {
  const desk = await RedisDesk.withServer(context, { settings: { appendonly: "no" } });
  const findings = await (await desk.connect()).check();
  const durability = findings.find(({ subject }) => subject === "durability");
  assert.equal(durability?.severity, "warning");
  assert.match(durability?.advice ?? "", /appendonly yes/);
  await desk.command("CONFIG", "SET", "appendonly", "yes");
  await desk.command("CONFIG", "SET", "appendfsync", "always");
  const better = await (await desk.connect()).check();
  assert.equal(better.find(({ subject }) => subject === "durability")?.severity, "ok");
});
