/** Keys that an engine hands out, or starts, ahead of a claim, and what becomes of them when nobody comes. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Engine, Grant } from "../src/engine/port.ts";
import { claim as oneClaim, entry as oneCar } from "./cars.ts";
import { until } from "./kit/until.ts";

const WITHIN_MS = 20_000;
const KEYS = 3_000;
const SLOTS = 16;
const LINES = 64;
const LONG = 40;

const claim = { ...oneClaim, max: SLOTS };

export interface AheadStage {
  readonly engine: Engine;
  /** Another process's, on the same store. */
  readonly other: Engine;
  /** How many keys are leased, to whomever. */
  readonly leased: () => Promise<number>;
}

export function addAheadTests(open: (context: TestContext) => Promise<AheadStage>): void {
  const begin = async (context: TestContext): Promise<AheadStage> => {
    const stage = await open(context);
    for (const engine of [stage.engine, stage.other]) await engine.declare({ queue: "cars" });
    const entries = Array.from({ length: KEYS }, (_, n) => ({ ...oneCar, queueLimit: 10_000, key: `k${n}` }));
    await stage.engine.submit(entries);
    return stage;
  };

  test(
    "what was handed out ahead goes to others, untried, if its worker does not come",
    { timeout: 60_000 },
    async (context) => {
      const stage = await begin(context);
      const { engine, other, leased } = stage;
      const done = new Map<string, number>();
      const had = await workUntilAhead(stage, done);
      await until(async () => (await leased()) === had.length, "the rest is given back");
      await engine.settle(had.map(({ lease }) => ({ lease, ending: { type: "release" } })));
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
    const stage = await begin(context);
    const { engine, other, leased } = stage;
    const had = await workUntilAhead(stage, new Map());
    await engine.pause({ queue: "cars", paused: true });
    const waiting = new AbortController();
    const next = engine.claim({ ...claim, signal: waiting.signal });
    await until(async () => (await leased()) === had.length, "all is given back");
    waiting.abort();
    assert.deepEqual(await next, []);
    await engine.settle(had.map(({ lease }) => ({ lease, ending: { type: "release" } })));
    await engine.pause({ queue: "cars", paused: false });
    const more = await workUntilAhead(stage, new Map());
    await engine.close();
    assert.equal(await leased(), more.length);
    await other.close();
  });

  test(
    "where an item may begin once only, none begins before the store knows",
    { timeout: 60_000 },
    async (context) => {
      const stage = await open(context);
      for (const engine of [stage.engine, stage.other]) await engine.declare({ queue: "cars" });
      // On a busy machine a worker may not look quick.
      await until(async () => (await begunAhead(stage.engine, false)) > 0, "some begin ahead otherwise");
      assert.equal(await begunAhead(stage.other, true), 0);
      await stage.other.close();
      await stage.engine.close();
    },
  );
}

/**
 * Works off whole lines like a worker whose items take no time. Returns how many items began before the end of the one before them on
 * their key was certain.
 */
async function begunAhead(engine: Engine, once: boolean): Promise<number> {
  const entries = Array.from({ length: LINES * LONG }, (_, n) => ({
    ...oneCar,
    queueLimit: 10_000,
    keyLimit: LONG,
    key: `line${n % LINES}`,
  }));
  await engine.submit(entries);
  const uncertain = new Set<string>();
  const settled: Promise<unknown>[] = [];
  let ahead = 0;
  const ask = (): Promise<readonly Grant[]> =>
    engine.claim({ ...claim, max: LINES, once, signal: AbortSignal.timeout(WITHIN_MS) });
  for (let done = 0, asked = ask(); done < entries.length;) {
    const grants = await asked;
    assert.ok(grants.length > 0, `${done} of ${entries.length} items came, and then none`);
    done += grants.length;
    // Whoever asked about the one before hears of it in the same turn.
    await new Promise(setImmediate);
    ahead += grants.filter(({ item }) => uncertain.has(item.key)).length;
    // As a worker does: what is freed can come right back.
    if (done < entries.length) asked = ask();
    for (const { item, lease } of grants) {
      uncertain.add(item.key);
      const settling = engine.settle([{ lease, ending: { type: "done" } }]);
      settled.push(settling.then(() => uncertain.delete(item.key)));
    }
  }
  await Promise.all(settled);
  return ahead;
}

/** Works like a worker whose items take no time, until more is leased than it has. Returns what it has, and counts what it did. */
async function workUntilAhead({ engine, leased }: AheadStage, done: Map<string, number>): Promise<readonly Grant[]> {
  const signal = AbortSignal.timeout(WITHIN_MS);
  let grants = await engine.claim({ ...claim, signal });
  for (;;) {
    for (const { item } of grants) done.set(item.key, (done.get(item.key) ?? 0) + 1);
    const settled = engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } })));
    grants = await engine.claim({ ...claim, signal });
    assert.ok(grants.length > 0, "there is work left, and a worker that is never thought quick");
    await settled;
    if ((await leased()) > grants.length) return grants;
  }
}
