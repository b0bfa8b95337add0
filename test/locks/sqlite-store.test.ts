/** What locks and holds need of an SQLite file: new files, boots, and processes that die while they wait. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { Lateness } from "../kit/lateness.ts";
import type { Cell } from "../../src/locks/register.ts";
import { SqliteEngine } from "../../src/engines/sqlite/engine.ts";
import type { Call, Requests } from "../../src/engines/sqlite/messages.ts";
import { Store } from "../../src/engines/sqlite/store.ts";
import type { Engine, Grant, Submission } from "../../src/engine/port.ts";
import { Child, Desk } from "../sqlite/desk.ts";

const QUEUE = "cars";
const PATIENCE_MS = 20_000;
const LEASE_MS = 1_000;
/** A key is kept for a quarter of a second for whoever waited to hold it. */
const PROMPT_MS = 5_000;

describe("a new file", () => {
  test("becomes a store once, whoever comes first", { timeout: 60_000 }, async (context) => {
    const desk = new Desk(context);
    const engines = await Promise.all(
      Array.from({ length: 6 }, () => SqliteEngine.open({ file: desk.file, synchronous: "normal" })),
    );
    context.after(() => Promise.all(engines.map((engine) => engine.close())));
    const [first] = engines;
    assert.ok(first !== undefined);
    const versions = await Promise.all(
      engines.map(({ register }, at) => register.write({ name: `test/${at}`, expected: 0, value: "v" })),
    );
    assert.equal(new Set(versions).size, engines.length);
    assert.equal((await first.register.list("test/")).length, engines.length);
  });
});

describe("after a boot", () => {
  test("cells have what was left of their time, by the wall clock", (context) => {
    const desk = new Desk(context);
    const clock = { wall: 1_700_000_000_000, monotonic: 5_000_000 };
    const open = (): Store => new Store(desk.file, "off", () => ({ ...clock }));
    const before = open();
    write(before, "test/session", 15_000);
    write(before, "test/done", 3_600_000);
    write(before, "test/kept", undefined);
    before.close();
    // The machine was off for ten minutes; its monotonic clock starts anew.
    clock.wall += 600_000;
    clock.monotonic = 20_000;
    const after = open();
    assert.deepEqual(names(after), ["test/done", "test/kept"]);
    clock.monotonic += 3_000_000 - 1;
    assert.deepEqual(names(after), ["test/done", "test/kept"]);
    clock.monotonic += 10;
    assert.deepEqual(names(after), ["test/kept"]);
    after.close();
  });

  test("a wall clock that went back gives a cell no more than it had", (context) => {
    const desk = new Desk(context);
    const clock = { wall: 1_700_000_000_000, monotonic: 5_000_000 };
    const before = new Store(desk.file, "off", () => ({ ...clock }));
    write(before, "test/session", 15_000);
    before.close();
    clock.wall -= 86_400_000;
    clock.monotonic = 20_000;
    const after = new Store(desk.file, "off", () => ({ ...clock }));
    assert.deepEqual(names(after), ["test/session"]);
    clock.monotonic += 15_010;
    assert.deepEqual(names(after), []);
    after.close();
  });
});

describe("a process that waits to hold a key", () => {
  test("and is killed keeps nobody from it", { timeout: 60_000 }, async (context) => {
    const { engine, first, child } = await withWaitingChild(context);
    await child.kill();
    using lateness = new Lateness();
    const from = performance.now();
    await engine.settle([{ lease: first.lease, ending: { type: "done" } }]);
    assert.equal((await claim(engine)).item.payload.body, "second");
    lateness.assertWithin(performance.now() - from, PROMPT_MS, "the next claim");
  });

  test("has it when the item is done, and is killed then: its lease runs out", { timeout: 90_000 }, async (context) => {
    const { engine, first, child } = await withWaitingChild(context);
    await engine.settle([{ lease: first.lease, ending: { type: "done" } }]);
    assert.equal(await child.next(), "holds");
    await child.kill();
    const [key] = await engine.keys({ queue: QUEUE, limit: 1 });
    assert.equal(key?.state, "held");
    assert.equal((await claim(engine)).item.payload.body, "second");
  });
});

async function withWaitingChild(
  context: TestContext,
): Promise<{ readonly engine: Engine; readonly first: Grant; readonly child: Child }> {
  const desk = new Desk(context);
  const engine = await SqliteEngine.open({ file: desk.file, synchronous: "normal" });
  context.after(() => engine.close());
  await engine.declare({ queue: QUEUE });
  await engine.submit([entry("first"), entry("second")]);
  const first = await claim(engine);
  const script = join(import.meta.dirname, "children", "sqlite-wait-to-hold.ts");
  const child = new Child(fork(script, [desk.file, QUEUE, "k", String(LEASE_MS)]));
  context.after(() => child.kill());
  assert.equal(await child.next(), "waits");
  return { engine, first, child };
}

function call<K extends "writeCell" | "listCells">(store: Store, kind: K, request: Requests[K]): unknown {
  const { replies } = store.run([{ call: 1, kind, request } as Call]);
  const [reply] = replies;
  assert.ok(reply !== undefined && "value" in reply);
  return reply.value;
}

function write(store: Store, name: string, ttlMs: number | undefined): void {
  assert.ok(call(store, "writeCell", { name, expected: 0, value: "v", ttlMs, tell: [], isQuiet: false }) !== undefined);
}

function names(store: Store): readonly string[] {
  return (call(store, "listCells", { prefix: "test/" }) as readonly Cell[]).map(({ name }) => name);
}

function entry(text: string): Submission {
  return {
    queue: QUEUE,
    key: "k",
    level: "normal",
    payload: { type: "text/plain", body: text },
    delayMs: 0,
    mode: "fifo",
    keyLimit: 100,
    queueLimit: 100,
    keepMs: 0,
  };
}

async function claim(engine: Engine): Promise<Grant> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const request = { queue: QUEUE, worker: "w", max: 1, leaseMs: 60_000, patienceMs: 60_000, signal };
  const [grant] = await engine.claim(request);
  assert.ok(grant !== undefined, "Nothing was handed out.");
  return grant;
}
