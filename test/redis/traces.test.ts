/** Nothing is left behind in the server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, Submission } from "../../src/engine/port.ts";
import { openRedis } from "./handles.ts";
import { until } from "../kit/until.ts";
import { RedisDesk } from "./desk.ts";

const KEEP_MS = 300;
const SOON_MS = 10_000;

function entry(key: string, more: Partial<Submission> = {}): Submission {
  return {
    queue: "cars",
    key,
    level: "normal",
    payload: { type: "text/plain", body: key },
    delayMs: 0,
    mode: "fifo",
    keyLimit: 1_000,
    queueLimit: 10_000,
    keepMs: 0,
    ...more,
  };
}

async function workOff(engine: Engine): Promise<void> {
  const signal = AbortSignal.timeout(SOON_MS);
  for (let round = 0; ; round += 1) {
    const [report] = await engine.queues({ queue: "cars" });
    if (report === undefined || report.waiting + report.delayed + report.running === 0) return;
    const request = { queue: "cars", worker: "w", leaseMs: 5_000, patienceMs: 60_000, max: 16 };
    const grants = await engine.claim({ ...request, signal });
    await engine.settle(
      grants.map(({ lease, item }) => ({
        lease,
        ending:
          round % 3 === 2 && item.attempt === 1
            ? { type: "retry", delayMs: round % 2 === 0 ? 20 : 0, place: "yield", failure: { message: "again" } }
            : { type: "done" },
      })),
    );
  }
}

test("what is done and forgotten leaves no key, whatever happened to it", { timeout: 30_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context);
  const engine = await openRedis(desk.url);
  context.after(() => engine.close());
  await engine.declare({ queue: "cars" });
  const size = async (): Promise<unknown> => await desk.command("DBSIZE");
  const before = await size();
  const levels = ["high", "normal", "low"];
  await engine.submit(
    Array.from({ length: 200 }, (_, index) =>
      entry(`k${index % 30}`, {
        level: levels[index % 3] ?? "normal",
        delayMs: index % 7 === 0 ? 30 : 0,
        ...(index % 2 === 0 ? { id: `i${index}`, keepMs: index % 4 === 0 ? KEEP_MS : 0 } : {}),
      }),
    ),
  );
  await engine.submit([entry("k1", { mode: "latest" }), entry("k2", { mode: "latest", delayMs: 10 })]);
  await engine.cancel({ queue: "cars", id: "i6" });
  await engine.cancel({ queue: "cars", id: "i70" });
  await engine.pause({ queue: "cars", key: "k3", paused: true });
  await engine.pause({ queue: "cars", key: "k3", paused: false });
  const signal = AbortSignal.abort();
  const held = await engine.hold({ queue: "cars", key: "held", worker: "h", leaseMs: 5_000, signal });
  assert.ok(held !== undefined);
  await engine.settle([{ lease: held, ending: { type: "release" } }]);
  await engine.submit([entry("doomed", { id: "doomed", keepMs: KEEP_MS, level: "high" })]);
  const request = { queue: "cars", worker: "w", leaseMs: 5_000, patienceMs: 60_000, max: 100 };
  const grants = await engine.claim({ ...request, signal: AbortSignal.timeout(SOON_MS) });
  await engine.settle(
    grants.map(({ lease, item }) => ({
      lease,
      ending: item.id === "doomed" ? { type: "dead", failure: { message: "no" } } : { type: "release" },
    })),
  );
  assert.equal(await engine.revive({ queue: "cars", action: "drop" }), 1);
  await workOff(engine);
  assert.deepEqual(await engine.keys({ queue: "cars", limit: 100 }), []);
  // Whatever is asked of the queue makes it forget what is to be forgotten.
  await until(async () => {
    await engine.queues({ queue: "cars" });
    return (await size()) === before;
  }, "the store is as it was");
});

test("a lease that was lost is told to its former holder in another process", { timeout: 30_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context);
  const [first, second] = [await openRedis(desk.url), await openRedis(desk.url)];
  context.after(() => Promise.all([first.close(), second.close()]));
  await first.declare({ queue: "cars" });
  await second.declare({ queue: "cars" });
  const { promise: heard, resolve } = Promise.withResolvers<number>();
  await first.submit([entry("car1")]);
  const signal = AbortSignal.timeout(SOON_MS);
  const request = { queue: "cars", patienceMs: 60_000, max: 1, signal };
  const lost = (lease: { readonly fence: number }): void => resolve(lease.fence);
  const [grant] = await first.claim({ ...request, worker: "first", leaseMs: 400, lost });
  const [taken] = await second.claim({ ...request, worker: "second", leaseMs: 5_000 });
  assert.equal(await heard, grant?.lease.fence);
  assert.ok((taken?.lease.fence ?? 0) > (grant?.lease.fence ?? 0));
});
