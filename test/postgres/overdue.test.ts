/** What has come due, and nobody has seen to: all who worked are gone, and somebody else asks. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import type { Engine, Grant, Submission } from "../../src/engine/port.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";

const LEASE_MS = 3_600_000;
const LEVELS = ["high", "normal", "low"];

let server: PostgresServer;
before(async () => {
  server = await startPostgres();
});
after(() => server.stop());

/** A handle of somebody who asks for no work, hours after all who did have gone. */
async function muchLater(work: (engine: Engine) => Promise<void>): Promise<Engine> {
  const url = await server.newDatabase();
  const worker = await openPostgresUrl(url);
  await worker.declare({ queue: "cars", levels: LEVELS });
  await work(worker);
  await worker.close();
  await server.query(
    `UPDATE baton.key SET at = at - ${2 * LEASE_MS}; UPDATE baton.timer SET at = at - ${2 * LEASE_MS};
     UPDATE baton.delayed SET due = due - ${2 * LEASE_MS}`,
    url,
  );
  const visitor = await openPostgresUrl(url);
  await visitor.declare({ queue: "cars" });
  return visitor;
}

describe("when all who worked are gone", () => {
  test("an item whose lease ran out is reported as waiting", async (context) => {
    const engine = await muchLater(async (worker) => {
      await submit(worker, "k", { id: "item" });
      await claim(worker);
    });
    context.after(() => engine.close());
    const item = await engine.find({ queue: "cars", id: "item" });
    assert.deepEqual([item?.state, item?.attempts?.map(({ end }) => end)], ["waiting", ["lost"]]);
  });

  test("keys and queues are reported without it", async (context) => {
    const engine = await muchLater(async (worker) => {
      await submit(worker, "k");
      await claim(worker);
    });
    context.after(() => engine.close());
    assert.deepEqual(
      (await engine.keys({ queue: "cars", limit: 10 })).map(({ key, state }) => `${key} ${state}`),
      ["k ready"],
    );
    const [report] = await engine.queues({ queue: "cars" });
    assert.deepEqual([report?.waiting, report?.running], [1, 0]);
  });

  test("a delayed item that is due is reported as waiting", async (context) => {
    const engine = await muchLater((worker) => submit(worker, "k", { delayMs: LEASE_MS }));
    context.after(() => engine.close());
    const [report] = await engine.queues({ queue: "cars" });
    assert.deepEqual([report?.waiting, report?.delayed], [1, 0]);
  });

  test("an item whose lease ran out is taken back at once", async (context) => {
    const engine = await muchLater(async (worker) => {
      await submit(worker, "k", { id: "item" });
      await claim(worker);
    });
    context.after(() => engine.close());
    assert.equal(await engine.cancel({ queue: "cars", id: "item" }), "cancelled");
    assert.equal((await engine.find({ queue: "cars", id: "item" }))?.state, "cancelled");
  });

  test("an item that was to be cancelled when its lease ran out has ended", async (context) => {
    const engine = await muchLater(async (worker) => {
      await submit(worker, "k", { id: "item" });
      await claim(worker);
      assert.equal(await worker.cancel({ queue: "cars", id: "item" }), "requested");
    });
    context.after(() => engine.close());
    assert.equal(await engine.cancel({ queue: "cars", id: "item" }), "ended");
  });

  test("a newer item replaces one whose lease ran out", async (context) => {
    const engine = await muchLater(async (worker) => {
      await submit(worker, "k", { id: "older" });
      await claim(worker);
    });
    context.after(() => engine.close());
    const [result] = await engine.submit([submission("k", { id: "newer", mode: "latest" })]);
    assert.deepEqual(result?.ok === true && result.accepted.replaced, ["older"]);
  });

  test("a key that was held can be submitted to in mode strict", async (context) => {
    const engine = await muchLater(async (worker) => {
      const request = { queue: "cars", key: "k", worker: "holder", leaseMs: LEASE_MS, signal: AbortSignal.abort() };
      assert.ok(await worker.hold(request));
    });
    context.after(() => engine.close());
    const [result] = await engine.submit([submission("k", { mode: "strict" })]);
    assert.equal(result?.ok, true, "Nobody holds the key any more");
  });
});

function submission(key: string, wish: Partial<Submission> = {}): Submission {
  return {
    queue: "cars",
    key,
    level: "normal",
    payload: { type: "text/plain", body: key },
    delayMs: 0,
    mode: "fifo",
    keyLimit: 10,
    queueLimit: 10,
    keepMs: wish.id === undefined ? 0 : 24 * LEASE_MS,
    ...wish,
  };
}

async function submit(engine: Engine, key: string, wish: Partial<Submission> = {}): Promise<void> {
  const [result] = await engine.submit([submission(key, wish)]);
  assert.equal(result?.ok, true, "The item is accepted");
}

async function claim(engine: Engine): Promise<readonly Grant[]> {
  const signal = AbortSignal.timeout(30_000);
  const request = { queue: "cars", worker: "worker", max: 1, leaseMs: LEASE_MS, patienceMs: LEASE_MS, signal };
  const grants = await engine.claim(request);
  assert.equal(grants.length, 1, "The item is handed out");
  return grants;
}
