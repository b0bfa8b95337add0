import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setStage, type Stage } from "../../test/worker-stage.ts";
import { instant } from "../domain/clock.ts";
import type { Grant, Item } from "../engine/port.ts";
import { KEEP_MS } from "./prefetch.ts";
import { Run, RUN_MS } from "./run.ts";

/** A handler whose items are at once done, but for those that a test ends by hand. */
class ByHand {
  readonly #open = new Map<string, () => void>();
  readonly #slow: ReadonlySet<string>;

  constructor(...slow: readonly string[]) {
    this.#slow = new Set(slow);
  }

  readonly handle = ({ id }: { readonly id: string }): Promise<void> | undefined =>
    this.#slow.has(id) ? new Promise((resolve) => this.#open.set(id, resolve)) : undefined;

  end(id: string): void {
    this.#open.get(id)?.();
    this.#open.delete(id);
  }

  endAll(): void {
    for (const id of this.#open.keys()) this.end(id);
  }
}

async function line(stage: Stage, key: string, ...ids: readonly string[]): Promise<void> {
  await stage.queue.submitMany(ids.map((id) => ({ key, payload: null, id })));
  await stage.clock.pass(0);
}

describe("keys that are kept until a slot is free", () => {
  test("go back in time, also those that came when others were kept already", async (context) => {
    const stage = setStage();
    const { clock, engine, queue } = stage;
    const byHand = new ByHand("b", "c", "e", "f");
    const store = stage.store.connect();
    await store.declare({ queue: "cars" });
    const grantedAt = new Map<number, number>();
    const keptMs: number[] = [];
    engine.onClaim = async (request) => {
      const grants = await store.claim(request);
      for (const { lease } of grants) grantedAt.set(lease.fence, clock.monotonic());
      return grants;
    };
    engine.onSettle = (settlements) => {
      for (const { lease, ending } of settlements)
        if (ending.type === "release") keptMs.push(clock.monotonic() - (grantedAt.get(lease.fence) ?? 0));
      return store.settle(settlements);
    };
    for (const id of ["a", "b", "c"]) await queue.submit(`key ${id}`, null, { id });
    const worker = queue.work(byHand.handle, { concurrency: 1 });
    context.after(() => {
      byHand.endAll();
      void worker.stop({ grace: 0 });
    });
    await clock.pass(KEEP_MS / 2);
    for (const id of ["e", "f"]) await queue.submit(`key ${id}`, null, { id });
    await clock.pass(3 * KEEP_MS);
    assert.ok(keptMs.length > 1, "No slot was free for the others: they go back.");
    assert.ok(Math.max(...keptMs) <= KEEP_MS, `They go back in ${KEEP_MS} ms; it was ${keptMs.join(", ")} ms.`);
  });
});

describe("a run whose item takes long", () => {
  test("is reported in time, also when another run is due later", async (context) => {
    const stage = setStage();
    const { clock, engine, queue } = stage;
    const byHand = new ByHand("a1", "a2", "b2");
    const worker = queue.work(byHand.handle, { concurrency: 2 });
    context.after(() => {
      byHand.endAll();
      void worker.stop({ grace: 0 });
    });
    await line(stage, "warm", "w");
    await line(stage, "a", "a1", "a2");
    await clock.pass(RUN_MS * 0.4);
    await line(stage, "b", "b1", "b2");
    await clock.pass(RUN_MS * 0.2);
    byHand.end("a1");
    await clock.pass(RUN_MS * 0.4);
    const named = engine.renewals.flat().flatMap(({ ended = [] }) => ended.map(({ id }) => id));
    assert.deepEqual(named, ["a1"], "The store is told of a1 while a2 goes on; b1 has time.");
  });
});

test("what two reports of a run say has come to the store once", () => {
  const { clock } = setStage();
  const item = (id: string): Item => ({
    id,
    queue: "q",
    key: "k",
    level: "normal",
    payload: { type: "text/plain", body: "" },
    headers: undefined,
    submittedAt: 0,
    attempt: 1,
  });
  const lease = { queue: "q", key: "k", fence: 1, since: instant(clock), handle: undefined };
  const grant: Grant = { lease, item: item("a"), behind: [item("b")] };
  const run = new Run(grant);
  assert.equal(run.next(grant.item, { type: "done" }, clock.monotonic())?.id, "b");
  const told = run.finished;
  assert.deepEqual(run.reported(), told);
  assert.deepEqual(run.reported(), [], "The answer to the second report is no news.");
});
