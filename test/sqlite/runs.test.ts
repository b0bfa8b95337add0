/** Runs, where the store is a file: others write to it meanwhile, and what a lease covers is still known when it is opened again. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import type { EndedItem, Engine, Grant, Outcome, Submission, SubmitResult } from "../../src/engine/port.ts";
import { Desk } from "./desk.ts";

const LONG_MS = 60_000;
const DONE = { type: "done" } as const;

test("a run is ended through another handle, after others have written", async (context) => {
  const desk = new Desk(context);
  const first = await open(context, desk);
  const second = await open(context, desk);
  await line(first, ["a", "b", "c", "d", "e"]);
  const { lease } = await claim(first, 4);
  await line(second, ["f"]);
  for (const id of ["c", "d"]) assert.equal(await second.cancel({ queue: "cars", id }), "requested");
  assert.equal(await second.cancel({ queue: "cars", id: "e" }), "cancelled");
  await line(first, ["g"]);

  const result = { type: "text/plain", body: "painted" };
  const ended: EndedItem[] = [
    { id: "a", ending: DONE },
    { id: "b", ending: { ...DONE, result } },
  ];
  assert.deepEqual(await second.settle([{ lease, ended, ending: { type: "release" } }]), ["settled"]);
  const outcomes = await Promise.all(["a", "b", "c", "d"].map((id) => outcome(first, id)));
  assert.deepEqual(
    outcomes.map((one) => [one?.state, one?.attempt, one?.result?.body]),
    [
      ["done", 1, undefined],
      ["done", 1, "painted"],
      ["cancelled", 0, undefined],
      ["cancelled", 0, undefined],
    ],
  );
  const [{ waiting } = { waiting: 0 }] = await first.keys({ queue: "cars", limit: 1 });
  assert.equal(waiting, 2, "What is left of it and what came since");
  assert.deepEqual(idsOf(await claim(first, 5)), ["f", "g"]);
});

test("a run leaves out what was cancelled before, and nothing of it stays in the file", async (context) => {
  const desk = new Desk(context);
  const engine = await open(context, desk);
  await line(engine, ["a", "b", "c", "d", "e", "f", "g"]);
  for (const id of ["b", "c", "e"]) assert.equal(await engine.cancel({ queue: "cars", id }), "cancelled");
  const grant = await claim(engine, 3);
  assert.deepEqual(idsOf(grant), ["a", "d", "f"]);
  await finish(engine, grant);
  const last = await claim(engine, 3);
  assert.deepEqual(idsOf(last), ["g"]);
  await finish(engine, last);
  const db = new DatabaseSync(desk.file);
  const left = ["key", "item", "link"].map((table) => db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]);
  db.close();
  assert.deepEqual(left, [0, 0, 0]);
});

test("a renewal with endings holds for whoever opens the file next, and may be said again", async (context) => {
  const desk = new Desk(context);
  const first = await open(context, desk);
  await line(first, ["a", "b", "c", "d"]);
  const { lease } = await claim(first, 3);
  assert.equal(await first.cancel({ queue: "cars", id: "b" }), "requested");
  const ended: EndedItem[] = [{ id: "a", ending: DONE }];
  const [renewed] = await first.renew([{ lease, leaseMs: LONG_MS, ended }]);
  assert.equal(renewed?.ok && renewed.cancelRequested, true, "Its new head is to be cancelled");
  await first.close();

  const second = await open(context, desk);
  const [again] = await second.renew([{ lease, leaseMs: LONG_MS, ended }]);
  assert.equal(again?.ok && again.cancelRequested, true);
  assert.equal((await second.find({ queue: "cars", id: "b" }))?.running?.attempt, 1);
  assert.equal(await second.cancel({ queue: "cars", id: "c" }), "cancelled", "It is not covered any more");
  assert.deepEqual(await second.settle([{ lease, ended, ending: { type: "release" } }]), ["settled"]);
  assert.equal((await outcome(second, "b"))?.state, "cancelled");
  assert.deepEqual(idsOf(await claim(second, 3)), ["d"]);
});

test("what a run had covered goes one by one after its process is gone, however often the file is opened", async (context) => {
  const desk = new Desk(context);
  const first = await open(context, desk);
  await line(first, ["a", "b", "c", "d", "e", "f"]);
  await claim(first, 3, 500);
  assert.equal(await first.cancel({ queue: "cars", id: "b" }), "requested");
  await first.close();

  const seen: unknown[] = [];
  for (let count = 0; count < 4; count += 1) {
    const engine = await open(context, desk);
    const grant = await claim(engine, 5);
    seen.push([idsOf(grant), grant.item.attempt, grant.item.losses]);
    await finish(engine, grant);
    if (count === 0) assert.equal((await outcome(engine, "b"))?.state, "cancelled");
    await engine.close();
  }
  assert.deepEqual(seen, [
    [["a"], 2, 1],
    [["c"], 1, undefined],
    [["d"], 1, undefined],
    [["e", "f"], 1, undefined],
  ]);
});

test("after a run in which something ended, keys that waited longer go first", async (context) => {
  const engine = await open(context, new Desk(context));
  await line(engine, ["a", "b", "c"]);
  const { lease } = await claim(engine, 3);
  await line(engine, ["other"], { key: "car2" });
  await engine.settle([{ lease, ended: [{ id: "a", ending: DONE }], ending: { type: "release" } }]);
  assert.deepEqual(idsOf(await claim(engine, 3)), ["other"]);
  assert.deepEqual(idsOf(await claim(engine, 3)), ["b", "c"]);
});

test("mode latest does not count what a lease covers as replaced", async (context) => {
  const engine = await open(context, new Desk(context));
  await line(engine, ["a", "b"]);
  await claim(engine, 2);
  const [full] = await line(engine, ["c"], { mode: "latest", queueLimit: 1 });
  assert.equal(full?.ok === false && full.error.code, "QUEUE_FULL");
  assert.equal((await line(engine, ["c"], { mode: "latest" }))[0]?.ok, true);
  const [replaces] = await line(engine, ["d"], { mode: "latest", queueLimit: 1 });
  assert.deepEqual(replaces?.ok === true && replaces.accepted.replaced, ["c"]);
});

test("a key that has nothing left is forgotten with what must go one by one, also within one transaction", async (context) => {
  const engine = await open(context, new Desk(context));
  await line(engine, ["a", "b", "c"]);
  await claim(engine, 3, 500);
  const { lease } = await claim(engine, 3);
  for (const id of ["b", "c"]) assert.equal(await engine.cancel({ queue: "cars", id }), "cancelled");
  const settled = engine.settle([{ lease, ending: DONE }]);
  const submitted = line(engine, ["d", "e"]);
  assert.deepEqual(idsOf(await claim(engine, 3)), ["d", "e"]);
  await Promise.all([settled, submitted]);
});

async function open(context: TestContext, desk: Desk): Promise<Engine> {
  const engine = await sqliteEngine({ file: desk.file });
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  return engine;
}

function line(
  engine: Engine,
  ids: readonly string[],
  wish: Partial<Submission> = {},
): Promise<readonly SubmitResult[]> {
  const terms = { delayMs: 0, mode: "fifo", keyLimit: 1_000, queueLimit: 1_000, keepMs: LONG_MS } as const;
  const payload = { type: "text/plain", body: "" };
  const submission: Submission = { queue: "cars", key: "car1", level: "normal", payload, ...terms, ...wish };
  return engine.submit(ids.map((id) => Object.assign({}, submission, { id })));
}

async function claim(engine: Engine, items: number, leaseMs = LONG_MS): Promise<Grant> {
  const signal = AbortSignal.timeout(20_000);
  const request = { queue: "cars", worker: "worker", max: 1, items, leaseMs, patienceMs: LONG_MS, signal };
  const [grant] = await engine.claim(request);
  assert.ok(grant, "Something was handed out");
  return grant;
}

function idsOf({ item, behind = [] }: Grant): readonly string[] {
  return [item, ...behind].map(({ id }) => id);
}

/** All of the run is done. */
async function finish(engine: Engine, grant: Grant): Promise<void> {
  const { lease } = grant;
  const ended = idsOf(grant)
    .slice(0, -1)
    .map((id): EndedItem => ({ id, ending: DONE }));
  assert.deepEqual(await engine.settle([{ lease, ended, ending: DONE }]), ["settled"]);
}

function outcome(engine: Engine, id: string): Promise<Outcome | undefined> {
  return engine.outcome({ queue: "cars", id, signal: AbortSignal.timeout(20_000) });
}
