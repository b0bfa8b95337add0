/** What it costs to wait, with a carrier that is well; and what happens when it is not. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { ask } from "../../servers/nats-probe.ts";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { startRedisServer } from "../../servers/redis-server.ts";
import { type Baton, connect, type Worker } from "../../src/index.ts";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { now } from "../server-desk.ts";

const IDLE_MS = 12_000;
/** One look, and what it leads to. Without a carrier there are two statements every two seconds. */
const MOST_STATEMENTS = 4;
/** The page says five; the rest is for a slow machine, and for the question itself. */
const GONE_MS = 8_000;

describe("stores whose wakes NATS carries", { concurrency: 4, timeout: 120_000 }, () => {
  test("PostgreSQL: idle workers ask next to nothing, and are woken all the same", async (context) => {
    const { postgres, open } = await onPostgres(context);
    const [submitter, idle] = [await open(), await open()];
    const ran = work(idle);
    await submitter.queue("cars").submit("first", null);
    await until(() => ran.keys.length === 1, "the first item");
    // Until those who were busy a moment ago have come to rest.
    await wait(3_000);
    const before = statements(postgres);
    await wait(IDLE_MS);
    const asked = statements(postgres).slice(before.length);
    assert.ok(asked.length <= MOST_STATEMENTS, `${asked.length} statements in ${IDLE_MS} ms: ${asked.join("; ")}`);
    using lateness = new Lateness();
    const from = now();
    await submitter.queue("cars").submit("second", null);
    await until(() => ran.keys.length === 2, "the second item");
    lateness.assertWithin(now() - from, 1_500, "the start of an item that workers are told of");
  });

  test("PostgreSQL: what the carrier does not take goes by NOTIFY", async (context) => {
    const { nats, open } = await onPostgres(context);
    const [submitter, idle] = [await open(), await open()];
    const ran = work(idle);
    await submitter.queue("cars").submit("first", null);
    await until(() => ran.keys.length === 1, "the first item");
    await nats.kill();
    // Both have noticed.
    await wait(1_000);
    using lateness = new Lateness();
    for (let number = 0; number < 5; number += 1) {
      const from = now();
      await submitter.queue("cars").submit(`during ${number}`, null);
      await until(() => ran.keys.length === number + 2, "an item while the carrier is away");
      lateness.assertWithin(now() - from, 1_000, "the start of an item that the carrier did not take");
    }
  });

  for (const store of ["PostgreSQL", "Redis"] as const) {
    test(`${store}: subscriptions end with the last worker`, async (context) => {
      const { nats, open } = store === "PostgreSQL" ? await onPostgres(context) : await onRedis(context);
      const baton = await open();
      const ran = work(baton);
      await baton.queue("cars").submit("first", null);
      await until(() => ran.keys.length === 1, "the first item");
      await until(() => isHeard(nats, "work"), "a subscription");
      await ran.worker.stop();
      using lateness = new Lateness();
      const from = now();
      for (const signal of ["work", "ended", "lost"])
        await until(async () => !(await isHeard(nats, signal)), `an end of ${signal}`);
      lateness.assertWithin(now() - from, GONE_MS, "the end of all subscriptions");
    });
  }

  test("Redis: workers that hear nothing look more often", async (context) => {
    const { nats, open } = await onRedis(context);
    const [submitter, idle] = [await open(), await open()];
    const ran = work(idle);
    await submitter.queue("cars").submit("first", null);
    await until(() => ran.keys.length === 1, "the first item");
    await nats.kill();
    await wait(500);
    using lateness = new Lateness();
    const from = now();
    await submitter.queue("cars").submit("second", null);
    await until(() => ran.keys.length === 2, "the second item");
    lateness.assertWithin(now() - from, 2_500, "the start of an item that workers look for");
  });
});

interface Stage {
  readonly nats: NatsServer;
  readonly open: () => Promise<Baton>;
}

async function onPostgres(context: TestContext): Promise<Stage & { readonly postgres: PostgresServer }> {
  const postgres = await startPostgres({ settings: { log_statement: "all" } });
  return { ...(await stage(context, postgres.url, () => postgres.stop())), postgres };
}

async function onRedis(context: TestContext): Promise<Stage> {
  const redis = await startRedisServer();
  return await stage(context, redis.url, () => redis.stop());
}

async function stage(context: TestContext, url: string, stop: () => Promise<void>): Promise<Stage> {
  const nats = await startNatsServer();
  const opened: Baton[] = [];
  context.after(async () => {
    await Promise.all(opened.map((baton) => baton.close({ grace: 0 })));
    await Promise.all([nats.stop(), stop()]);
  });
  const open = async (): Promise<Baton> => {
    const baton = await connect(url, { wake: nats.url, onEvent: () => undefined });
    opened.push(baton);
    return baton;
  };
  return { nats, open };
}

function work(baton: Baton): { readonly keys: readonly string[]; readonly worker: Worker } {
  const keys: string[] = [];
  return { keys, worker: baton.queue("cars").work(({ key }) => void keys.push(key)) };
}

/** What Baton has sent to the server so far. */
function statements(postgres: PostgresServer): readonly string[] {
  const log = readFileSync(join(postgres.folder, "postgres.log"), "utf8");
  return Array.from(log.matchAll(/execute (baton_\w+)/g), ([, name = ""]) => name);
}

/** Whether anybody listens: the server says at once when nobody does. */
async function isHeard({ port }: NatsServer, signal: string): Promise<boolean> {
  try {
    await ask(port, `baton.${signal}`);
  } catch (error) {
    return !String(error).includes("Nobody answers");
  }
  return true;
}
