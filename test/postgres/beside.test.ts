/** Steps side by side over two connections, and what becomes of them when the second is refused, hangs or dies. */
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import type { Engine, SettleResult } from "../../src/engine/port.ts";
import { openPostgresUrl, postgresEngine } from "../../src/engines/postgres/index.ts";
import { started } from "../started.ts";
import { claim as oneClaim, entry as oneCar } from "../cars.ts";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { PostgresDesk } from "./desk.ts";

const WITHIN_MS = 20_000;
/** Half of what a connection may take to be made. */
const LONG_MS = 5_000;
const KEYS = 3_000;
const ASKING = 4;

const common = started(() => startPostgres());

/** Slots enough that many items end at once. */
const claim = { ...oneClaim, max: 64 };
const entries = Array.from({ length: KEYS }, (_, n) => ({ ...oneCar, key: `k${n}`, queueLimit: 10 * KEYS }));

/** Work for a worker, and somebody who looks on. */
async function open(context: TestContext): Promise<{ readonly url: string; readonly watcher: Client }> {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  await engine.submit(entries);
  await engine.close();
  const watcher = new Client(url);
  await watcher.connect();
  context.after(() => watcher.end());
  // The server may take a while to notice that the first one has gone, and connections are known by when they began.
  await until(async () => (await connectionsOf(watcher)).length === 0, "nobody is connected");
  return { url, watcher };
}

/** When they began, youngest last. */
async function connectionsOf(watcher: Client): Promise<readonly number[]> {
  const { rows } = await watcher.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE application_name = 'baton' AND datname = current_database() ORDER BY backend_start`,
  );
  return rows.map(({ pid }) => pid);
}

/** The whole queue, by some who ask at the same time and do not wait for what they settle. Returns how often each key's turn came. */
async function workOff(engine: Engine, meanwhile: () => Promise<void>): Promise<readonly number[]> {
  const turns = new Map<string, number>();
  const settled: Promise<readonly SettleResult[]>[] = [];
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(WITHIN_MS)]);
  const work = async (): Promise<void> => {
    while (turns.size < KEYS) {
      const grants = await untilCertain(() => engine.claim({ ...claim, signal }));
      for (const { item } of grants) turns.set(item.key, (turns.get(item.key) ?? 0) + 1);
      assert.ok(grants.length > 0 || turns.size === KEYS, `${turns.size} of ${KEYS} keys came, and then none`);
      const endings = grants.map(({ lease }) => ({ lease, ending: { type: "done" } }) as const);
      settled.push(untilCertain(() => engine.settle(endings)));
      await meanwhile();
    }
    over.abort();
  };
  await Promise.all(Array.from({ length: ASKING }, work));
  await Promise.all(settled);
  return [...turns.values()];
}

/** As a worker does: what was handed out in a call whose outcome is unknown is handed out again. */
async function untilCertain<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      assert.ok(error instanceof Error && "code" in error && error.code === "OUTCOME_UNKNOWN", String(error));
    }
  }
}

test("many items that end at once end over two connections, each once", { timeout: 60_000 }, async (context) => {
  const { url, watcher } = await open(context);
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  let most = 0;
  await until(async () => {
    const turns = await workOff(engine, async () => {
      most = Math.max(most, (await connectionsOf(watcher)).length);
    });
    assert.ok(turns.every((times) => times === 1));
    // On a busy machine a worker may not look quick.
    if (most < 3) await engine.submit(entries);
    return most < 3 ? undefined : true;
  }, "one works, one beside it, and one listens");
  await engine.close();
});

test("a role that may have only two connections works with one", { timeout: 60_000 }, async (context) => {
  const { url, watcher } = await open(context);
  await watcher.query(
    `CREATE ROLE two LOGIN CONNECTION LIMIT 2; GRANT USAGE ON SCHEMA baton TO two;
     GRANT ALL ON ALL TABLES IN SCHEMA baton TO two; GRANT ALL ON ALL SEQUENCES IN SCHEMA baton TO two`,
  );
  const limited = new URL(url);
  limited.username = "two";
  const engine = await openPostgresUrl(limited.href);
  await engine.declare({ queue: "cars" });
  const turns = await workOff(engine, async () => {
    assert.ok((await connectionsOf(watcher)).length <= 2);
  });
  assert.ok(turns.every((times) => times === 1));
  await engine.close();
});

test("nobody waits for a connection that is never answered", { timeout: 60_000 }, async (context) => {
  const { url } = await open(context);
  using lateness = new Lateness();
  const hung: Socket[] = [];
  let connections = 0;
  const stream = (): Socket => {
    connections += 1;
    const socket = new Socket();
    // One that only tells its address, one that works, one that listens.
    if (connections <= 3) return socket;
    hung.push(socket);
    return Object.assign(socket, { connect: () => socket });
  };
  const engine = await postgresEngine({ connection: { connectionString: url, stream } });
  await engine.declare({ queue: "cars" });
  await until(async () => {
    assert.ok((await workOff(engine, () => Promise.resolve())).every((times) => times === 1));
    const at = performance.now();
    await engine.submit(entries);
    lateness.assertWithin(performance.now() - at, LONG_MS, "a submission beside a connection that is never answered");
    return hung.length > 0 ? true : undefined;
  }, "a third connection is asked for");
  await engine.close();
  for (const socket of hung) socket.destroy();
});

test("a connection that dies beside another takes no key with it", { timeout: 60_000 }, async (context) => {
  const { url, watcher } = await open(context);
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  // Steps take so long that two are under way nearly all the time, and somebody waits for the first.
  await watcher.query(
    `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.03); RETURN NULL; END';
     CREATE TRIGGER slow AFTER DELETE ON baton.item FOR EACH STATEMENT EXECUTE FUNCTION slow()`,
  );
  let kills = 0;
  await until(async () => {
    await workOff(engine, async () => {
      const [, , beside] = await connectionsOf(watcher);
      const { rowCount } = await watcher.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'PgSleep'",
        [beside],
      );
      kills += rowCount ?? 0;
    });
    if (kills === 0) await engine.submit(entries);
    return kills > 0 ? true : undefined;
  }, "one was killed");
  const { rows } = await watcher.query<{ n: number }>("SELECT count(*)::integer AS n FROM baton.item");
  assert.equal(rows[0]?.n, 0, "all are done, and none is leased to nobody");
  await engine.close();
});
