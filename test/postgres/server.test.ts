/** What becomes of the work when the server or a connection goes away; and what is refused. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createConnection, createServer } from "node:net";
import { test } from "node:test";
import { Client, Pool } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import { openPostgresUrl, postgresEngineOn } from "../../src/engines/postgres/index.ts";
import { connect } from "../../src/index.ts";
import { until } from "../kit/until.ts";
import { PostgresDesk, refusal } from "./desk.ts";
import { startStandby } from "./standby.ts";
import { started } from "../started.ts";

const WITHIN_MS = 20_000;
const PAYLOADS = 40;

/** For all who leave it alone. */
const common = started(() => startPostgres());

test("a worker goes on when the server was killed and is back", { timeout: 60_000 }, async (context) => {
  const { desk, server } = await PostgresDesk.withServer(context);
  const cars = (await desk.connect()).queue<number>("cars", { lease: "3s" });
  const seen = new Set<number>();
  cars.work((item) => {
    seen.add(item.payload);
  });
  const submit = async (payload: number): Promise<void> => {
    await until(async () => {
      try {
        return await cars.submit(`car${payload % 4}`, payload, { id: `item-${payload}` });
      } catch (error) {
        assert.ok(error instanceof Error && "code" in error);
        assert.ok(["OUTCOME_UNKNOWN", "STORE_UNAVAILABLE"].includes(String(error.code)), error.message);
        return undefined;
      }
    }, "an accepted item");
  };
  for (let payload = 0; payload < PAYLOADS; payload += 1) {
    if (payload === PAYLOADS / 2) {
      await server.kill();
      const { code, message } = await refusal(cars.submit("car1", -1));
      assert.ok(code === "STORE_UNAVAILABLE" || code === "OUTCOME_UNKNOWN", message);
      const away = await refusal(cars.status());
      assert.equal(away.code, "STORE_UNAVAILABLE");
      assert.match(away.message, /Check that the server runs/);
      await server.restart();
    }
    await submit(payload);
  }
  await until(() => seen.size >= PAYLOADS, "all items");
});

test("a listener that is killed is replaced, and nothing is lost meanwhile", { timeout: 60_000 }, async (context) => {
  const desk = await PostgresDesk.withDatabase(context, common());
  const { url } = desk;
  const submitting = (await desk.connect()).queue<number>("cars");
  const working = (await desk.connect()).queue<number>("cars");
  let worked = 0;
  working.work(() => {
    worked += 1;
  });
  const killListeners = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database() AND pid <> pg_backend_pid()`;
  for (let count = 1; count <= 30; count += 1) {
    if (count % 10 === 0) assert.ok(((await common().query(killListeners, url)).rowCount ?? 0) >= 1);
    await submitting.submit("car1", count);
    await until(() => worked >= count, `item ${count}`);
  }
  const listens =
    "SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database() AND pid <> pg_backend_pid()";
  await until(async () => (await common().query(listens, url)).rowCount === 2, "two listeners");
});

test(
  "a statement whose connection is cut has an unknown outcome, and can be repeated",
  { timeout: 60_000 },
  async (context) => {
    const desk = await PostgresDesk.withDatabase(context, common());
    const { url } = desk;
    const cars = (await desk.connect()).queue<number>("cars");
    await cars.submit("car1", 0, { id: "before" });
    const blocker = new Client(url);
    await blocker.connect();
    await blocker.query("BEGIN; LOCK TABLE baton.item");
    const submitting = refusal(cars.submit("car1", 1, { id: "item" }));
    const waits = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    const pid = await until(async () => (await common().query(waits, url)).rows[0]?.["pid"], "a statement that waits");
    await common().query(`SELECT pg_terminate_backend(${Number(pid)})`, url);
    assert.equal((await submitting).code, "OUTCOME_UNKNOWN");
    await blocker.query("ROLLBACK");
    await blocker.end();
    await cars.submit("car1", 1, { id: "item" });
    assert.equal((await cars.status()).waiting, 2);
  },
);

test("eight processes that begin at once find one schema", { timeout: 60_000 }, async (context) => {
  const desk = await PostgresDesk.withDatabase(context, common());
  const { url } = desk;
  const children = Array.from({ length: 8 }, (_, index) => desk.start("open-and-submit", `car${index}`));
  await Promise.all(children.map((child) => child.next()));
  for (const child of children) child.send(url);
  const answers = await Promise.all(children.map((child) => child.next()));
  assert.deepEqual(
    answers,
    children.map(() => "accepted"),
  );
  assert.equal((await (await desk.connect()).queue("cars").status()).waiting, 8);
});

test("the pool of the application stays open, and gets its connections back", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const pool = new Pool({ connectionString: url, max: 3 });
  const baton = await connect(await postgresEngineOn(pool, { schema: "mine" }));
  const done = Promise.withResolvers<void>();
  baton.queue("cars").work(() => done.resolve());
  await baton.queue("cars").submit("car1", 1);
  await done.promise;
  await baton.close();
  const { rows } = await pool.query<{ n: number }>("SELECT count(*)::integer AS n FROM mine.key");
  assert.equal(rows[0]?.n, 0);
  const three = await Promise.all([pool.connect(), pool.connect(), pool.connect()]);
  for (const client of three) client.release();
  // Here, because the server is stopped by what comes afterwards.
  await pool.end();
});

test("schemas that are newer, older, or not Baton's, are refused and left as they are", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const baton = await connect(url);
  await baton.close();
  await common().query("UPDATE baton.store SET version = 99", url);
  const newer = await refusal(connect(url));
  assert.equal(newer.code, "STORE_TOO_NEW");
  assert.deepEqual((await common().query("SELECT version FROM baton.store", url)).rows, [{ version: 99 }]);
  await common().query("UPDATE baton.store SET version = 3", url);
  const older = await refusal(connect(url));
  assert.equal(older.code, "STORE_TOO_OLD");
  assert.match(older.message, /unreleased.*schema 3.*Nothing was changed\. Work off.*drop the schema, or name another/);
  assert.deepEqual((await common().query("SELECT version FROM baton.store", url)).rows, [{ version: 3 }]);
  await common().query("CREATE SCHEMA theirs; CREATE TABLE theirs.orders (id integer)", url);
  assert.equal((await refusal(connect(`${url}?schema=theirs`))).code, "STORE_CORRUPT");
  assert.equal((await refusal(connect(`${url}?schema=Robert'); DROP`))).code, "INVALID_INPUT");
  // Tables of theirs that are called as ours is: of other columns, empty, and with what ours says.
  const stores = ["(id integer)", "(version integer)", "AS SELECT 1 AS version", "AS SELECT 'two' AS version"];
  for (const [number, columns] of stores.entries()) {
    const schema = `shop${number}`;
    await common().query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.store ${columns}`, url);
    const { code, message } = await refusal(connect(`${url}?schema=${schema}`));
    assert.equal(code, "STORE_CORRUPT");
    assert.match(message, /are not Baton's.*schema=/);
  }
  assert.equal((await refusal(connect(`${url}?synchronous_commit=maybe`))).code, "INVALID_INPUT");
});

test("a role that may only use the schema can do everything", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  await (await connect(url)).close();
  await common().query(
    `CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA baton TO app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO app; GRANT USAGE ON ALL SEQUENCES IN SCHEMA baton TO app`,
    url,
  );
  const baton = await connect(url.replace("baton@", "app@"));
  const cars = baton.queue<number>("cars");
  const done = Promise.withResolvers<void>();
  cars.work(() => done.resolve());
  await cars.submit("car1", 1, { id: "item" });
  await done.promise;
  const hold = await cars.hold("car2");
  await hold.release();
  await baton.withLock("nightly", async () => undefined);
  await cars.pause("car3");
  await cars.resume("car3");
  assert.deepEqual(await cars.keys(), []);
  await baton.close();
});

test("whoever lost a key is told by the one who took it", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const [first, second] = [await openPostgresUrl(url), await openPostgresUrl(url)];
  for (const engine of [first, second]) await engine.declare({ queue: "cars" });
  const told = Promise.withResolvers<number>();
  const claim = { queue: "cars", worker: "w", max: 1, patienceMs: 1_000, signal: AbortSignal.timeout(WITHIN_MS) };
  const entry = { queue: "cars", level: "normal", payload: { type: "text/plain", body: "x" }, delayMs: 0, keepMs: 0 };
  await first.submit([{ ...entry, key: "car1", mode: "fifo", keyLimit: 10, queueLimit: 10 }]);
  const [grant] = await first.claim({ ...claim, leaseMs: 200, lost: ({ fence }) => told.resolve(fence) });
  const [taken] = await second.claim({ ...claim, leaseMs: 60_000 });
  assert.equal(taken?.lease.key, "car1");
  assert.equal(await told.promise, grant?.lease.fence);
  await Promise.all([first.close(), second.close()]);
});

test("a connection that falls silent is given up, and another is made", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const { port } = new URL(url);
  let isMute = false;
  const proxy = createServer((near) => {
    const far = createConnection(Number(port), "127.0.0.1");
    const isOld = !isMute;
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("data", (data) => {
        // From the statement in question on; whatever comes between others finds a connection that answers.
        isMute ||= data.includes("the silent one");
        if (!isMute || !isOld) to.write(data);
      });
      from.on("error", () => undefined);
      from.on("close", () => to.destroy());
    }
  }).listen(0, "127.0.0.1");
  context.after(() => proxy.close());
  await once(proxy, "listening");
  const through = new URL(`${url}?query_timeout=500`);
  const address = proxy.address();
  assert.ok(typeof address === "object" && address !== null);
  through.hostname = "127.0.0.1";
  through.port = String(address.port);
  const baton = await connect(through.href);
  const cars = baton.queue<number>("cars");
  await cars.submit("car1", 1);
  assert.equal((await refusal(cars.submit("car1", 2, { id: "the silent one" }))).code, "OUTCOME_UNKNOWN");
  await cars.submit("car1", 2, { id: "the silent one" });
  assert.equal((await cars.status()).waiting, 2);
  await baton.close();
});

test("what was asked for by mistake is refused with what to do", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const slip = await refusal(connect(`${url}?shema=mine`));
  assert.equal(slip.code, "INVALID_INPUT");
  assert.match(slip.message, /shema/);
  const pool = new Pool({ connectionString: url, max: 2 });
  const small = await refusal(postgresEngineOn(pool));
  assert.equal(small.code, "INVALID_INPUT");
  await pool.end();
  await common().query("CREATE ROLE guest LOGIN", url);
  const guest = await refusal(connect(url.replace("baton@", "guest@")));
  assert.equal(guest.code, "STORE_READ_ONLY");
  assert.match(guest.message, /Grant it/);
});

test("words that PostgreSQL has reserved name no schema", { timeout: 60_000 }, async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const { rows } = await common().query("SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'", url);
  assert.ok(rows.length > 100);
  for (const word of [...rows.map((row) => String(row["word"])), "loop"]) {
    const { code, message } = await refusal(connect(`${url}?schema=${word}`));
    assert.equal(code, "INVALID_INPUT", word);
    assert.ok(message.includes(`baton_${word}`), message);
  }
  // One that is not reserved.
  await (await connect(`${url}?schema=zone`)).close();
});

test("a standby is said to be one, whether the schema is there or not", { timeout: 60_000 }, async (context) => {
  const standby = await startStandby(async ({ url }) => (await connect(url)).close());
  context.after(() => standby.stop());
  for (const url of [standby.url, `${standby.url}?schema=another`]) {
    const { code, message } = await refusal(connect(url));
    assert.equal(code, "STORE_READ_ONLY");
    assert.match(message, /Connect to the primary/);
  }
});

test("who is not let in is told why", { timeout: 60_000 }, async () => {
  const missing = await refusal(connect(common().urlOf("nowhere")));
  assert.equal(missing.code, "STORE_UNAVAILABLE");
  assert.match(missing.message, /refused the connection.*Create the database/);
  const stranger = await refusal(connect(common().url.replace("baton@", "nobody@")));
  assert.equal(stranger.code, "STORE_UNAVAILABLE");
  assert.match(stranger.message, /refused the connection.*Check the user/);
});

test("doctor says what carries wakes", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const baton = await connect(url, { wake: "memory:" });
  const findings = await baton.check();
  assert.ok(findings.some(({ subject, detail }) => subject === "wakes" && detail.includes("memory")));
  await baton.close();
});

test("doctor names a table that is gone, and so does whoever needs it", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const baton = await connect(url);
  assert.ok((await baton.check()).every(({ severity }) => severity !== "error"));
  await common().query("DROP TABLE baton.receipt", url);
  const errors = (await baton.check()).filter(({ severity }) => severity === "error");
  assert.deepEqual(
    errors.map(({ detail }) => detail),
    ["of schema baton something is gone: receipt"],
  );
  assert.equal((await refusal(baton.queue("cars").submit("car1", null, { id: "one" }))).code, "STORE_CORRUPT");
  await baton.close();
});

test("a server that is not there is said so, with what to do", async () => {
  const server = await startPostgres();
  await server.stop();
  const { code, message } = await refusal(connect(server.url));
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.match(message, /Nothing was done/);
});
