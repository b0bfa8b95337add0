import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { Engine, Submission } from "../../src/engine/port.ts";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import { claim, entry } from "../cars.ts";
import { NatsDesk } from "./desk.ts";

const WITHIN_MS = 20_000;
const SLOTS = 16;
const KEYS = 2_000;
const PATIENCE_MS = 50;

/** Levels in the order in which a worker whose items take no time was given them. */
async function workOff(engine: Engine, count: number, meanwhile: (done: number) => void): Promise<readonly string[]> {
  const levels: string[] = [];
  const settled: Promise<unknown>[] = [];
  const request = { ...claim, max: SLOTS, patienceMs: PATIENCE_MS, signal: AbortSignal.timeout(WITHIN_MS) };
  while (levels.length < count) {
    const grants = await engine.claim(request);
    assert.ok(grants.length > 0);
    levels.push(...grants.map(({ item }) => item.level));
    settled.push(engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } }))));
    meanwhile(levels.length);
  }
  await Promise.all(settled);
  return levels;
}

async function open(context: TestContext, url: string): Promise<Engine> {
  const engine = await openNatsUrl(url);
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  return engine;
}

function cars(count: number, level: string): readonly Submission[] {
  return Array.from({ length: count }, (_, n) => ({ ...entry, level, queueLimit: 10_000, key: `${level}${n}` }));
}

test("what has waited too long gets a part of the turns", { timeout: 60_000 }, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  await engine.submit([...cars(KEYS, "low"), ...cars(KEYS, "high")]);
  const levels = await workOff(engine, KEYS, () => undefined);
  const low = levels.filter((level) => level === "low").length;
  // A quarter, less what goes before anything has waited too long, and while it is on its way.
  assert.ok(low > KEYS / 10 && low < KEYS / 3, `${low} of ${KEYS}`);
});

test("what is urgent goes next, however quick the worker is", { timeout: 60_000 }, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const engine = await open(context, server.url);
  await engine.submit(cars(KEYS, "low"));
  let accepted: Promise<unknown> | undefined;
  let acceptedAt = KEYS;
  const levels = await workOff(engine, KEYS + 1, (done) => {
    if (done < KEYS / 2 || accepted !== undefined) return;
    accepted = engine.submit(cars(1, "high")).then(() => (acceptedAt = done));
  });
  await accepted;
  const after = levels.indexOf("high") - acceptedAt;
  // Its delivery comes behind those that were asked for before, at most a few claims.
  assert.ok(after < 400, `it came ${after} items after it was accepted`);
});
