/** Keys that are handed out ahead of a claim, and what becomes of them when nobody comes. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import type { Engine, Grant } from "../../src/engine/port.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { started } from "../started.ts";
import { claim as oneClaim, entry as oneCar } from "./cars.ts";
import { PostgresDesk, until } from "./desk.ts";

const WITHIN_MS = 20_000;
const KEYS = 3_000;
const SLOTS = 16;

const common = started(() => startPostgres());

const entry = { ...oneCar, queueLimit: 10_000 };
const claim = { ...oneClaim, max: SLOTS };

/** Over a connection that is there already: what is handed out ahead is not kept for long. */
async function leased(watcher: Client): Promise<number> {
  const { rows } = await watcher.query<{ n: number }>("SELECT count(*)::integer AS n FROM baton.key WHERE state = 2");
  return rows[0]?.n ?? 0;
}

interface Stage {
  readonly url: string;
  readonly engine: Engine;
  readonly watcher: Client;
}

async function open(context: TestContext): Promise<Stage> {
  const { url } = await PostgresDesk.withDatabase(context, common());
  const engine = await openPostgresUrl(url);
  await engine.declare({ queue: "cars" });
  await engine.submit(Array.from({ length: KEYS }, (_, n) => ({ ...entry, key: `k${n}` })));
  const watcher = new Client(url);
  await watcher.connect();
  context.after(() => watcher.end());
  return { url, engine, watcher };
}

/** Works like a worker whose items take no time, until more is leased than it has. Returns what it has, and counts what it did. */
async function workUntilAhead({ engine, watcher }: Stage, done: Map<string, number>): Promise<readonly Grant[]> {
  const signal = AbortSignal.timeout(WITHIN_MS);
  let grants = await engine.claim({ ...claim, signal });
  for (;;) {
    for (const { item } of grants) done.set(item.key, (done.get(item.key) ?? 0) + 1);
    const settled = engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } })));
    grants = await engine.claim({ ...claim, signal });
    assert.ok(grants.length > 0, "there is work left, and a worker that is never thought quick");
    await settled;
    if ((await leased(watcher)) > grants.length) return grants;
  }
}

test(
  "what was handed out ahead goes to others, untried, if its worker does not come",
  { timeout: 60_000 },
  async (context) => {
    const stage = await open(context);
    const { url, engine, watcher } = stage;
    const done = new Map<string, number>();
    const had = await workUntilAhead(stage, done);
    await until("the rest is given back", WITHIN_MS, async () =>
      (await leased(watcher)) === had.length ? true : undefined,
    );
    await engine.settle(had.map(({ lease }) => ({ lease, ending: { type: "release" } })));

    const other = await openPostgresUrl(url);
    await other.declare({ queue: "cars" });
    while (done.size < KEYS) {
      const grants = await other.claim({ ...claim, worker: "o", max: 500, signal: AbortSignal.timeout(WITHIN_MS) });
      assert.ok(grants.length > 0);
      for (const { item } of grants) {
        done.set(item.key, (done.get(item.key) ?? 0) + 1);
        assert.equal(item.attempt, 1);
      }
      await other.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } })));
    }
    assert.ok([...done.values()].every((times) => times === 1));
    await other.close();
    await engine.close();
  },
);

test("a pause, and a close, give back at once what was handed out ahead", { timeout: 60_000 }, async (context) => {
  const stage = await open(context);
  const { engine, watcher } = stage;
  const had = await workUntilAhead(stage, new Map());
  await engine.pause({ queue: "cars", paused: true });
  const waiting = new AbortController();
  const next = engine.claim({ ...claim, signal: waiting.signal });
  await until("all is given back", WITHIN_MS, async () => ((await leased(watcher)) === had.length ? true : undefined));
  waiting.abort();
  assert.deepEqual(await next, []);
  await engine.settle(had.map(({ lease }) => ({ lease, ending: { type: "release" } })));
  await engine.pause({ queue: "cars", paused: false });
  const more = await workUntilAhead(stage, new Map());
  await engine.close();
  assert.equal(await leased(watcher), more.length);
});
