/** Holds of a queue's key that wait, on a real server, when those who wait die. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ask } from "../../servers/nats-probe.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import type { Engine, Grant, Submission } from "../../src/engine/port.ts";
import { until } from "../kit/until.ts";
import { started } from "../started.ts";
import { Lateness } from "../kit/lateness.ts";
import { openLossy, openNats } from "./nats-handles.ts";

const PATIENCE_MS = 15_000;
const LEASE_MS = 400;
/** Nothing but a lease could take so long. */
const PROMPT_MS = 5_000;

const running = started(() => startNatsServer());

describe("a hold that waits, on NATS", () => {
  test("whose process died long ago does not keep the key from others", { timeout: 60_000 }, async (context) => {
    const queue = "died";
    const worker = await openNats(context, [running().port]);
    const { engine: dying, wire } = await openLossy(context, [running().port]);
    await Promise.all([worker, dying].map((engine) => engine.declare({ queue })));
    await worker.submit([entry(queue, "first"), entry(queue, "second")]);
    const first = await claim(worker, queue);
    const waiting = dying.hold({
      queue,
      key: "k",
      worker: "holder",
      leaseMs: LEASE_MS,
      signal: new AbortController().signal,
    });
    waiting.catch(() => undefined);
    await until(() => isWanted(queue), "the wish, in the state of the key");
    const living = await sessions(queue);
    assert.equal(living, 2);
    wire.kill();
    // Somebody has noticed, and has looked after what it held: nothing.
    await until(async () => (await sessions(queue)) === 1, "the end of its session");
    using lateness = new Lateness();
    const from = performance.now();
    await worker.settle([{ lease: first.lease, ending: { type: "done" } }]);
    const second = await claim(worker, queue);
    assert.equal(second.item.payload.body, "second");
    lateness.assertWithin(performance.now() - from, PROMPT_MS, "the next claim");
  });

  test(
    "whose process dies right after it was handed the key frees it after its lease",
    { timeout: 60_000 },
    async (context) => {
      const queue = "dies";
      const worker = await openNats(context, [running().port]);
      const { engine: dying, wire } = await openLossy(context, [running().port]);
      await Promise.all([worker, dying].map((engine) => engine.declare({ queue })));
      await worker.submit([entry(queue, "first"), entry(queue, "second")]);
      const first = await claim(worker, queue);
      dying
        .hold({ queue, key: "k", worker: "holder", leaseMs: LEASE_MS, signal: new AbortController().signal })
        .catch(() => undefined);
      await until(() => isWanted(queue), "the wish, in the state of the key");
      wire.kill();
      await worker.settle([{ lease: first.lease, ending: { type: "done" } }]);
      const [held] = await worker.keys({ queue, limit: 1 });
      assert.equal(held?.state, "held");
      assert.equal((await claim(worker, queue)).item.payload.body, "second");
    },
  );

  test("goes on waiting while the server is away", { timeout: 60_000 }, async (context) => {
    const queue = "away";
    const worker = await openNats(context, [running().port]);
    const other = await openNats(context, [running().port]);
    await Promise.all([worker, other].map((engine) => engine.declare({ queue })));
    await worker.submit([entry(queue, "first")]);
    const first = await claim(worker, queue);
    const waiting = other.hold({
      queue,
      key: "k",
      worker: "holder",
      leaseMs: 30_000,
      signal: AbortSignal.timeout(PATIENCE_MS * 2),
    });
    await until(() => isWanted(queue), "the wish, in the state of the key");
    await running().kill();
    await running().restart();
    await worker.settle([{ lease: first.lease, ending: { type: "done" } }]);
    const lease = await waiting;
    assert.ok(lease !== undefined && lease.fence > first.lease.fence);
    await other.settle([{ lease, ending: { type: "release" } }]);
  });
});

function entry(queue: string, text: string): Submission {
  return {
    queue,
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

async function claim(engine: Engine, queue: string): Promise<Grant> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const [grant] = await engine.claim({ queue, worker: "w", max: 1, leaseMs: 60_000, patienceMs: 60_000, signal });
  assert.ok(grant !== undefined, "Nothing was handed out.");
  return grant;
}

interface Answer {
  readonly message?: { readonly data?: string };
  readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
}

async function isWanted(queue: string): Promise<boolean> {
  const request = { last_by_subj: `baton.q.${queue}.s.run.*.*` };
  const { message } = (await ask(running().port, `$JS.API.STREAM.MSG.GET.baton-${queue}`, request)) as Answer;
  return Buffer.from(message?.data ?? "", "base64")
    .toString("utf8")
    .includes('"wa":');
}

async function sessions(queue: string): Promise<number> {
  const request = { subjects_filter: `baton.c.session.${queue}.*` };
  const { state } = (await ask(running().port, "$JS.API.STREAM.INFO.baton", request)) as Answer;
  return Object.keys(state?.subjects ?? {}).length;
}
