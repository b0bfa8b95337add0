/**
 * Many ids at the same moment: by three handles, each on keys of its own, so that nothing but the id itself keeps them apart.
 * Nothing else is asked of the store meanwhile, or the handles would come one after the other.
 */
import type { Engine, Submission, SubmitResult } from "../../../../src/engine/port.ts";
import type { Random } from "../../../kit/random.ts";
import { until } from "../../../kit/until.ts";
import type { Store } from "../store.ts";
import { LEVELS } from "./plan.ts";

const ROUNDS = 6;
const FAR_MS = 3_600_000;
const FORGOTTEN_WITHIN_MS = 30_000;

let raced = 0;

/** What was wrong about it, in sentences. */
export async function race(store: Store, engines: readonly Engine[], random: Random): Promise<readonly string[]> {
  const queue = `race${(raced += 1)}`;
  for (const engine of engines) await engine.declare({ queue, levels: LEVELS });
  const found: string[] = [];
  for (let round = 0; round < ROUNDS && found.length === 0; round += 1) {
    const ids = Array.from({ length: random.between(6, 24) }, (_, index) => `race ${round} ${index}`);
    // In one call or in several, in the same order or not: what is slow in one store is quick in another.
    const atOnce = random.pick([1, ids.length]);
    const isSorted = random.chance(0.7);
    const all = await Promise.all(
      engines.map((engine, by) => submitAll(engine, queue, isSorted ? ids : shuffled(ids, random), by, atOnce, FAR_MS)),
    );
    found.push(...judge(ids, all));
  }
  if (found.length === 0 && store.allowance.forgetsOnTime)
    found.push(...(await raceForTheForgotten(store, engines, queue)));
  return found;
}

/** An id is known while its item is, and for as long as it was to be remembered; and then it is anybody's, once. */
async function raceForTheForgotten(
  store: Store,
  engines: readonly Engine[],
  queue: string,
): Promise<readonly string[]> {
  const [engine] = engines;
  if (engine === undefined) return [];
  const keepMs = store.unitMs / 2;
  const ids = Array.from({ length: 8 }, (_, index) => `short ${index}`);
  const first = await submitAll(engine, queue, ids, 8, 1, keepMs);
  const alone = judge(ids, [first]);
  const endedAfter = performance.now();
  await drain(engine, queue);
  const again = await submitAll(engine, queue, ids, 9, ids.length, keepMs);
  const early = [...again.values()].some((result) => isFirst(result)) && performance.now() < endedAfter + keepMs;
  const tooEarly = early ? ["an id was forgotten while it was to be remembered"] : [];
  await drain(engine, queue);
  const isForgotten = async (): Promise<boolean> => (await engine.find({ queue, id: ids[0] ?? "" })) === undefined;
  await until(isForgotten, "an id to be forgotten", FORGOTTEN_WITHIN_MS);
  const [id = ""] = ids;
  const all = await Promise.all(engines.map((one, by) => submitAll(one, queue, [id], by, 1, FAR_MS)));
  return [...alone, ...tooEarly, ...judge([id], all)];
}

function judge(ids: readonly string[], all: readonly ReadonlyMap<string, SubmitResult>[]): readonly string[] {
  return ids.flatMap((id) => {
    const results = all.flatMap((one) => one.get(id) ?? []);
    const firsts = results.filter(isFirst).length;
    const keys = new Set(results.map((result) => (result.ok ? result.accepted.key : "refused")));
    return [
      ...(firsts === 1 ? [] : [`id ${id} was accepted ${firsts} times by handles that came at once`]),
      ...(keys.size === 1 ? [] : [`id ${id} has several receipts: ${[...keys].join(", ")}`]),
    ];
  });
}

function isFirst(result: SubmitResult): boolean {
  return result.ok && !result.accepted.duplicate;
}

async function submitAll(
  engine: Engine,
  queue: string,
  ids: readonly string[],
  by: number,
  atOnce: number,
  keepMs: number,
): Promise<ReadonlyMap<string, SubmitResult>> {
  const batches = Array.from({ length: Math.ceil(ids.length / atOnce) }, (_, at) =>
    ids.slice(at * atOnce, (at + 1) * atOnce),
  );
  const results = await Promise.all(
    batches.map((batch) => engine.submit(batch.map((id) => submission(queue, id, by, keepMs)))),
  );
  return new Map(results.flat().flatMap((result, index) => (ids[index] === undefined ? [] : [[ids[index], result]])));
}

function submission(queue: string, id: string, by: number, keepMs: number): Submission {
  return {
    queue,
    key: `of ${by}`,
    id,
    level: "normal",
    mode: "fifo",
    keyLimit: 1_000_000,
    queueLimit: 1_000_000,
    payload: { type: "text/plain", body: id },
    delayMs: 0,
    keepMs,
  };
}

async function drain(engine: Engine, queue: string): Promise<void> {
  for (;;) {
    const [report] = await engine.queues({ queue });
    if (report === undefined || report.waiting === 0) return;
    const signal = AbortSignal.timeout(FORGOTTEN_WITHIN_MS);
    const request = { queue, worker: "worker", max: 100, leaseMs: FAR_MS, patienceMs: FAR_MS, signal };
    const grants = await engine.claim(request);
    await engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } })));
  }
}

function shuffled<T>(list: readonly T[], random: Random): readonly T[] {
  return list
    .map((one) => ({ one, place: random.next() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ one }) => one);
}
