/** What came due while nobody asked for anything: whoever looks sees it as having happened. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import type { Engine, Grant, Submission } from "../../src/engine/port.ts";
import { Desk, now } from "./desk.ts";

const SHORT_MS = 50;
const HOUR_MS = 3_600_000;
/** Longer than a question waits for the lock, on a busy machine. */
const PROMPT_MS = 10_000;

test("a lease that ran out is not shown as running, whatever is asked first", async (context) => {
  const questions: Readonly<Record<string, (engine: Engine) => Promise<unknown>>> = {
    keys: async (engine) => await leased(engine),
    find: async (engine) => {
      const report = await engine.find({ queue: "cars", id: "item" });
      return report?.state === "waiting" && report.running === undefined ? [] : report;
    },
    queues: async (engine) => {
      const [report] = await engine.queues({ queue: "cars" });
      return report?.running === 0 && report.waiting === 1 ? [] : report;
    },
  };
  for (const [name, ask] of Object.entries(questions)) {
    const { engine } = await open(context);
    await submit(engine);
    await claimOne(engine);
    await wait(2 * SHORT_MS);
    assert.deepEqual(await ask(engine), [], name);
  }
});

test("what was delayed, and what was tried, is shown as ready when it is", async (context) => {
  const { engine } = await open(context);
  await submit(engine, { id: "tried", key: "tried" });
  const { lease } = await claimOne(engine, HOUR_MS);
  await engine.settle([
    { lease, ending: { type: "retry", delayMs: SHORT_MS, place: "keep", failure: { message: "no" } } },
  ]);
  await submit(engine, { id: "delayed", key: "delayed", delayMs: SHORT_MS });
  await wait(2 * SHORT_MS);
  const keys = await engine.keys({ queue: "cars", limit: 10 });
  assert.deepEqual(
    keys.map(({ key, state, delayed }) => [key, state, delayed]),
    [
      ["delayed", "ready", 0],
      ["tried", "ready", 0],
    ],
  );
});

test("questions write nothing while nothing is due", async (context) => {
  const { engine, desk } = await open(context);
  await submit(engine);
  await claimOne(engine, HOUR_MS);
  await submit(engine, { id: "delayed", key: "delayed", delayMs: HOUR_MS });
  using db = new DatabaseSync(desk.file);
  const version = (): unknown => db.prepare("PRAGMA data_version").get()?.["data_version"];
  const before = version();
  await askAll(engine);
  assert.equal(version(), before);
  db.exec("BEGIN IMMEDIATE");
  const began = now();
  for (let time = 0; time < 5; time += 1) await askAll(engine);
  assert.ok(now() - began < PROMPT_MS, "Nobody waits for the write lock");
  db.exec("COMMIT");
});

test("whoever looks while the store cannot be written sees what is there", async (context) => {
  const { engine, desk } = await open(context);
  await submit(engine);
  await claimOne(engine);
  await wait(2 * SHORT_MS);
  using db = new DatabaseSync(desk.file);
  db.exec("BEGIN IMMEDIATE");
  const began = now();
  assert.deepEqual(await leased(engine), ["car1"]);
  assert.ok(now() - began < PROMPT_MS, "The answer does not wait until the store can be written");
  db.exec("COMMIT");
  assert.deepEqual(await leased(engine), []);
});

test("the check warns of a lease that ran out and that nobody took over", async (context) => {
  const { engine } = await open(context);
  await submit(engine);
  await claimOne(engine);
  await wait(2 * SHORT_MS);
  const subjects = (await engine.check()).flatMap(({ severity, subject }) => (severity === "warning" ? [subject] : []));
  assert.deepEqual(subjects, ["Leases"]);
});

async function open(context: TestContext): Promise<{ readonly engine: Engine; readonly desk: Desk }> {
  const desk = new Desk(context);
  const engine = await sqliteEngine({ file: desk.file });
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  return { engine, desk };
}

async function submit(engine: Engine, wish: Partial<Submission> = {}): Promise<void> {
  const payload = { type: "text/plain", body: "" };
  const limits = { keyLimit: 1_000, queueLimit: 1_000, keepMs: HOUR_MS };
  const usual = { queue: "cars", key: "car1", id: "item", level: "normal", payload, delayMs: 0 } as const;
  await engine.submit([{ ...usual, mode: "fifo", ...limits, ...wish }]);
}

async function claimOne(engine: Engine, leaseMs = SHORT_MS): Promise<Grant> {
  const signal = AbortSignal.timeout(20_000);
  const [grant] = await engine.claim({ queue: "cars", worker: "worker", max: 1, leaseMs, patienceMs: 60_000, signal });
  assert.ok(grant, "Something was handed out");
  return grant;
}

async function leased(engine: Engine): Promise<readonly string[]> {
  return (await engine.keys({ queue: "cars", limit: 10, leased: true })).map(({ key }) => key);
}

async function askAll(engine: Engine): Promise<void> {
  await engine.keys({ queue: "cars", limit: 10 });
  await engine.find({ queue: "cars", id: "item" });
  await engine.queues({});
}
