import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { postgresEngine } from "../../src/engines/postgres/index.ts";
import { connect } from "../../src/index.ts";
import { claim, entry } from "../cars.ts";
import { PostgresDesk } from "./desk.ts";

/** What version 3 of the schema added. */
const WITHOUT_RUNS = `
  ALTER TABLE baton.key DROP COLUMN covered, DROP COLUMN alone; ALTER TABLE baton.item DROP COLUMN losses, DROP COLUMN cancel;
  ALTER TABLE baton.delayed DROP COLUMN losses;
  ALTER TABLE baton.key ALTER COLUMN calm SET DEFAULT 0; UPDATE baton.key SET calm = 0, ahead = 0;`;

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.stop());

test("tables of the version before the history of attempts are upgraded, and keep their items", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, server);
  const old = await connect(url);
  const queue = old.queue<string>("cars");
  await queue.submit("waits", "payload of waits", { id: "waits" });
  await (await queue.take())[0]?.retry(new Error("no luck"), { after: "1h" });
  await queue.submit("dead", "payload of dead", { id: "dead" });
  await (await queue.take())[0]?.dead(new Error("given up"));
  await queue.submit("done", "", { id: "done" });
  await (await queue.take())[0]?.done("painted");
  await old.close();
  // As version 1 left it: with functions of other arguments, which were called as those that are there now.
  await server.query(
    `${WITHOUT_RUNS} ALTER TABLE baton.item DROP COLUMN tried; ALTER TABLE baton.delayed DROP COLUMN tried; ALTER TABLE baton.dead DROP COLUMN tried;
     ALTER TABLE baton.receipt DROP COLUMN tried, DROP COLUMN missing; UPDATE baton.store SET version = 1;
     CREATE FUNCTION baton.give_back(me bigint, k baton.key, tried integer, again bigint) RETURNS integer LANGUAGE sql AS 'SELECT 1';`,
    url,
  );

  const baton = await connect(url);
  context.after(() => baton.close());
  const cars = baton.queue<string>("cars");
  const waits = await cars.item("waits");
  assert.deepEqual(
    [waits?.state, waits?.attempt, waits?.failure, waits?.attempts],
    ["waiting", 1, undefined, undefined],
  );
  assert.equal((await cars.item("done"))?.outcome?.result?.body, '"painted"');
  const [letter] = await cars.dead();
  assert.deepEqual([letter?.id, letter?.failure.message, letter?.attempts], ["dead", "given up", undefined]);
  assert.equal(await cars.retryDead(["dead"]), 1);
  const [again] = await cars.take();
  assert.deepEqual([again?.item.key, again?.item.payload], ["dead", "payload of dead"]);
  await again?.retry(new Error("once more"), { after: "1h" });
  assert.equal((await cars.item("dead"))?.failure?.message, "once more");
});

test("tables of the version before runs are upgraded under a lease, and grant runs", async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, server);
  const old = await postgresEngine({ connection: url });
  context.after(() => old.close());
  await old.declare({ queue: "cars" });
  await old.submit(Array.from("abc", (id) => ({ ...entry, key: "k", id })));
  const signal = AbortSignal.timeout(20_000);
  const [{ lease } = assert.fail("Nothing was handed out.")] = await old.claim({ ...claim, signal });
  await server.query(
    `${WITHOUT_RUNS} UPDATE baton.store SET version = 2;
     CREATE FUNCTION baton.let_go(kid bigint) RETURNS integer LANGUAGE sql AS 'SELECT 1';`,
    url,
  );
  const engine = await postgresEngine({ connection: url });
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  assert.deepEqual(await engine.settle([{ lease, ended: [], ending: { type: "done" } }]), ["settled"]);
  const [grant] = await engine.claim({ ...claim, items: 5, signal });
  // Whoever is still connected from before is not allowed to begin what no lease covers.
  const { rows } = await server.query("SELECT FROM baton.key WHERE calm < 9007199254740991", url);
  assert.equal(rows.length, 0);
  assert.deepEqual([grant?.item.id, grant?.behind?.map(({ id }) => id), grant?.item.losses], ["b", ["c"], undefined]);
});
