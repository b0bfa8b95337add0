/** Leases that the store gave in a call whose reply was lost: they go to others, untried, long before they run out. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import type { Engine, Grant, Submission } from "../../src/engine/port.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { claim as oneClaim, entry as oneCar } from "../cars.ts";
import { started } from "../started.ts";
import { PostgresDesk, refusal } from "./desk.ts";
import { LossyWay } from "../lossy-way.ts";

/** Leases take three times as long. */
const WITHIN_MS = 20_000;
const KEYS = 3_000;
const SLOTS = 64;

const common = started(() => startPostgres());
const claim = { ...oneClaim, max: SLOTS };

const entries = (keys: number): readonly Submission[] =>
  Array.from({ length: keys }, (_, n) => ({ ...oneCar, key: `k${n}`, queueLimit: KEYS }));

interface Stage {
  readonly engine: Engine;
  readonly way: LossyWay;
  readonly watcher: Client;
}

async function open(context: TestContext, keys: number): Promise<Stage> {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const way = await LossyWay.to(url);
  const engine = await openPostgresUrl(way.url);
  await engine.declare({ queue: "cars" });
  await engine.submit(entries(keys));
  const watcher = new Client(url);
  await watcher.connect();
  context.after(async () => {
    await engine.close();
    way.close();
    await watcher.end();
  });
  return { engine, way, watcher };
}

async function claimed(engine: Engine): Promise<readonly Grant[]> {
  return await engine.claim({ ...claim, signal: AbortSignal.timeout(WITHIN_MS) });
}

async function highestFence(watcher: Client): Promise<number> {
  const { rows } = await watcher.query<{ fence: string }>("SELECT max(fence) AS fence FROM baton.key");
  return Number(rows[0]?.fence);
}

test("keys whose grants were lost on the way are given back", { timeout: 60_000 }, async (context) => {
  const { engine, way, watcher } = await open(context, 10);
  const lost = way.lose({ word: "baton_step", leastBytes: 500 });
  const { code } = await refusal(claimed(engine));
  assert.equal(code, "OUTCOME_UNKNOWN");
  await lost;
  const fence = await highestFence(watcher);
  assert.ok(fence > 0, "the server leased what nobody heard of");
  const grants = await claimed(engine);
  for (const { item, lease } of grants) {
    assert.equal(item.attempt, 1);
    assert.ok(lease.fence > fence);
  }
  assert.ok(grants.length > 0, "the keys are leased to nobody");
});

test("what its holder knows is not given back", { timeout: 60_000 }, async (context) => {
  const { engine, way, watcher } = await open(context, 2);
  const [first] = await engine.claim({ ...oneClaim, signal: AbortSignal.timeout(WITHIN_MS) });
  const lock = { queue: "cars", key: "mine", worker: "w", leaseMs: claim.leaseMs };
  const held = await engine.hold({ ...lock, signal: AbortSignal.timeout(WITHIN_MS) });
  assert.ok(first !== undefined && held !== undefined);
  const lost = way.lose({ word: "baton_step", leastBytes: 500 });
  assert.equal((await refusal(claimed(engine))).code, "OUTCOME_UNKNOWN");
  await lost;
  const [second] = await claimed(engine);
  assert.ok(second !== undefined && second.item.key !== first.item.key);
  const { rows } = await watcher.query("SELECT FROM baton.key WHERE state = 2");
  assert.equal(rows.length, 3);
  const endings = [first.lease, held].map((lease) => ({ lease, ending: { type: "done" } }) as const);
  assert.deepEqual(await engine.settle(endings), ["settled", "settled"]);
});

test("a hold whose reply was lost does not keep the key", { timeout: 60_000 }, async (context) => {
  const { engine, way } = await open(context, 0);
  const lock = { queue: "cars", key: "mine", worker: "w", leaseMs: claim.leaseMs };
  const lost = way.lose({ word: "baton_hold" });
  const hold = () => engine.hold({ ...lock, signal: AbortSignal.timeout(WITHIN_MS) });
  assert.equal((await refusal(hold())).code, "OUTCOME_UNKNOWN");
  await lost;
  assert.ok((await hold()) !== undefined, "the key is held by nobody");
});

test("a server that leases only after its client is gone is asked again", { timeout: 60_000 }, async (context) => {
  const { engine, way, watcher } = await open(context, 10);
  await watcher.query(
    `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END';
     CREATE TRIGGER slow AFTER DELETE ON baton.ready FOR EACH STATEMENT EXECUTE FUNCTION slow()`,
  );
  const lost = way.lose({ word: "baton_step", atOnce: true });
  assert.equal((await refusal(claimed(engine))).code, "OUTCOME_UNKNOWN");
  await lost;
  assert.ok((await claimed(engine)).length > 0, "the keys are leased to nobody");
});
