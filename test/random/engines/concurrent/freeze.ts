/**
 * A process that stands still for longer than its leases last, and then goes on as if nothing had happened: what it settles and renews comes
 * before anybody, itself included, has seen that they have run out. Nothing may come of it.
 */
import type {
  EndedItem,
  Ending,
  Engine,
  Grant,
  Lease,
  RenewResult,
  SettleResult,
  Submission,
} from "../../../../src/engine/port.ts";
import type { Random } from "../../../kit/random.ts";
import type { Store } from "../store.ts";
import { LEVELS } from "./plan.ts";

const ITEMS = 12;
/** The number of the one that is to be cancelled while it runs. */
const CANCELLED = 0;
const FAR_MS = 3_600_000;
/** Clocks of different programs, and times that are rounded up. */
const MARGIN_MS = 50;
const COMES_MS = 30_000;
const FAILURE = { message: "too late" };
const ENDINGS: readonly Ending[] = [
  { type: "done" },
  { type: "done" },
  { type: "done", result: { type: "text/plain", body: "too late" } },
  { type: "retry", delayMs: 0, place: "keep", failure: FAILURE },
  { type: "retry", delayMs: FAR_MS, place: "yield", failure: FAILURE },
  { type: "dead", failure: FAILURE },
  { type: "cancelled" },
  { type: "release" },
];

let frozen = 0;

/** What was wrong about it, in sentences. */
export async function freeze(
  store: Store,
  engines: readonly Engine[],
  random: Random,
  first: "settle" | "renew",
): Promise<readonly string[]> {
  const queue = `freeze${(frozen += 1)}`;
  const leaseMs = store.unitMs / 2;
  for (const engine of engines) await engine.declare({ queue, levels: LEVELS });
  const [engine] = engines;
  if (engine === undefined) return [];
  const common = { queue, level: "normal", mode: "fifo", keyLimit: ITEMS, queueLimit: 2 * ITEMS, delayMs: 0 } as const;
  const all = Array.from({ length: ITEMS }, (_, index) => index);
  // Those that a lease covers behind the one that runs.
  const covered = engine.runs === true ? all.filter((index) => index !== CANCELLED) : [];
  const submission = (index: number, body: string, id?: string): Submission => ({
    ...common,
    key: `key ${index}`,
    payload: { type: "text/plain", body },
    ...(id === undefined ? { keepMs: 0 } : { id, keepMs: FAR_MS }),
  });
  const isNamed = (index: number): boolean => index === CANCELLED || random.chance(0.3);
  await engine.submit([
    ...all.map((index) => submission(index, `item ${index}`, isNamed(index) ? `id ${index}` : undefined)),
    ...covered.map((index) => submission(index, `covered item ${index}`)),
  ]);
  const grants = await claimed(engine, queue, ITEMS, leaseMs);
  const held = await engine.hold({ queue, key: "held", worker: "holder", leaseMs, signal: AbortSignal.abort() });
  const wanted = { queue, id: `id ${CANCELLED}` };
  const asked = await engine.cancel(wanted);
  if (asked !== "requested") return [`to cancel what runs was ${asked}`];
  // Nobody touches the one that is to be cancelled: it has to end by itself.
  const leases = grants.filter(({ item }) => item.id !== wanted.id).map(({ lease }) => lease);
  const firsts = new Map(grants.map(({ lease, item }) => [lease, item.id]));
  const before = (lease: Lease): { readonly ended?: readonly EndedItem[] } => {
    const id = covered.length > 0 && random.chance(0.6) ? firsts.get(lease) : undefined;
    return id === undefined ? {} : { ended: [{ id, ending: { type: "done" } }] };
  };
  const renewed = leases.slice(0, ITEMS / 3);
  // They run out later, and then as surely.
  const moved = leases.slice(ITEMS / 3, ITEMS / 2);
  const settled = held === undefined ? leases.slice(ITEMS / 2) : leases.slice(ITEMS / 2).concat(held);
  const inTime = await engine.renew(moved.map((lease) => ({ lease, leaseMs: 2 * leaseMs })));
  if (inTime.some(({ ok }) => !ok)) return ["a lease could not be renewed"];
  standStill(leaseMs + MARGIN_MS);
  const settle = (): Promise<readonly SettleResult[]> =>
    engine.settle(settled.map((lease) => ({ lease, ...before(lease), ending: random.pick(ENDINGS) })));
  const renew = (): Promise<readonly RenewResult[]> =>
    engine.renew(renewed.map((lease) => ({ lease, leaseMs: FAR_MS, ...before(lease) })));
  // The second may come when the store has looked for what is due.
  const early = first === "renew" ? renew() : undefined;
  const settlements = await settle();
  const renewals = await (early ?? renew());
  const late = [
    ...settled.filter((_, index) => settlements[index] !== "lost").map((lease) => `${named(lease)} was settled`),
    ...renewed.filter((_, index) => renewals[index]?.ok !== false).map((lease) => `${named(lease)} was renewed`),
  ].map((what) => `${what} after its time`);
  if (late.length > 0) return late;
  const again = await claimed(engine, queue, leases.length, FAR_MS);
  await engine.settle(again.map(({ lease }) => ({ lease, ending: { type: "done" } })));
  const fences = new Map(grants.map(({ lease }) => [lease.key, lease.fence]));
  const found: string[] = [];
  const outcome = await engine.outcome({ ...wanted, signal: AbortSignal.timeout(COMES_MS) });
  if (outcome?.state !== "cancelled") found.push(`what was to be cancelled is ${outcome?.state ?? "not over"}`);
  for (const { lease, item, behind = [] } of again) {
    const fence = fences.get(lease.key) ?? 0;
    if (behind.length > 0) found.push("a key whose lease ran out was handed out with more than one item");
    if (engine.runs === true && item.losses !== 1)
      found.push(`an item whose lease ran out came back with ${item.losses ?? 0} losses`);
    if (item.attempt !== 2) found.push(`an item whose lease ran out came back with attempt ${item.attempt}`);
    if (lease.fence <= fence) found.push(`${named(lease)} came after ${fence}`);
  }
  const innocent = await claimed(engine, queue, covered.length, FAR_MS);
  await engine.settle(innocent.map(({ lease }) => ({ lease, ending: { type: "done" } })));
  for (const { item } of innocent)
    if (item.attempt !== 1 || item.losses !== undefined)
      found.push(
        `an item that was covered when a lease ran out came with attempt ${item.attempt} and ${item.losses ?? 0} losses`,
      );
  return found;
}

async function claimed(engine: Engine, queue: string, count: number, leaseMs: number): Promise<readonly Grant[]> {
  const grants: Grant[] = [];
  const runs = engine.runs === true ? { items: 2 } : {};
  const request = { queue, worker: "worker", leaseMs, patienceMs: FAR_MS, ...runs };
  while (grants.length < count) {
    const some = await engine.claim({ ...request, max: count - grants.length, signal: AbortSignal.timeout(COMES_MS) });
    if (some.length === 0) throw new Error(`Only ${grants.length} of ${count} items were handed out.`);
    grants.push(...some);
  }
  return grants;
}

function named({ key, fence }: Lease): string {
  return `fence ${fence} of ${key}`;
}

/** Not even a timer fires. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
