/** What happens in one run: who is there, what they do, and what goes wrong. Drawn from a seed, or written by hand. */
import type { Mode } from "../../src/domain/settings.ts";
import type { Passing, Way } from "../jetstream/faults.ts";
import { Random } from "../kit/random.ts";
import { CALM_RATES, type LineRates } from "./line.ts";

export interface ItemPlan {
  readonly key: string;
  readonly level: number;
  readonly id: string | undefined;
  readonly mode: Mode;
  readonly delayMs: number;
  readonly keeps: boolean;
  /** Too big to be carried by its key: what comes behind it stands in line. */
  readonly big: boolean;
  /** How its attempts fail, one after the other; then it succeeds. */
  readonly failures: readonly Failing[];
  /** How long its handler takes, in leases. */
  readonly leases: number;
}

export type Failing =
  | { readonly type: "retry"; readonly place: "keep" | "yield"; readonly delayMs: number }
  | { readonly type: "dead" }
  | { readonly type: "release" };

export type Deed =
  /** Together in one call. */
  | { readonly type: "submit"; readonly items: readonly ItemPlan[] }
  /** Some item that was submitted before. */
  | { readonly type: "cancel"; readonly pick: number }
  /** Waits for so long; 0 is a try. */
  | { readonly type: "hold"; readonly key: string; readonly waitMs: number; readonly forMs: number }
  | { readonly type: "pause"; readonly key: string | undefined; readonly forMs: number };

export type Fault =
  | { readonly type: "crash"; readonly sent: "lost" | "arrives"; readonly serverNoticesMs: number }
  | { readonly type: "stop"; readonly forMs: number }
  | { readonly type: "cut"; readonly forMs: number; readonly clientNoticesMs: number; readonly serverNoticesMs: number }
  | { readonly type: "restart"; readonly downMs: number; readonly forgetAcksMs: number; readonly inWrite: boolean }
  | { readonly type: "step"; readonly byMs: number }
  /** An operator deletes a consumer: of that level, or behind the last one that of what comes due. */
  | { readonly type: "delete"; readonly consumer: number };

export interface Timed<T> {
  readonly at: number;
  /** Which of those that live then. */
  readonly process: number;
  readonly what: T;
}

/** At one message of one process. */
export interface Interference {
  readonly process: string;
  readonly way: Way;
  /** Counted from 1, of those that count. */
  readonly number: number;
  readonly counts: (passing: Passing) => boolean;
  readonly does: "kill before" | "kill after" | "lose" | "cut" | "stop";
}

export interface Plan {
  readonly seed: number;
  readonly leaseMs: number;
  readonly keys: readonly string[];
  /** Slots of each process. None: it only submits. */
  readonly processes: readonly number[];
  /** The most items of a run. */
  readonly runs: number;
  readonly replicas: number;
  readonly stale: number;
  readonly lateMs: number;
  readonly wallShiftMs: number;
  readonly troubleMs: number;
  readonly rates: LineRates;
  /** Items of which nothing is remembered, on keys that were idle for a while; and renewals that are under way when an item ends. */
  readonly plain: boolean;
  /** Writes go in batches, from the first on. */
  readonly together: boolean;
  /** Of handlers: neither renew nor care. */
  readonly careless: number;
  readonly deeds: readonly Timed<Deed>[];
  readonly faults: readonly Timed<Fault>[];
  readonly interference: Interference | undefined;
}

/** Without any fault of the network, of processes or of the server. */
/** Straight to the only server: then a connection loses nothing but by being cut. */
export function isDirect({ replicas, rates, interference }: Plan): boolean {
  return replicas === 1 && rates.requestLost === 0 && interference?.does !== "lose";
}

export function isCalm({ rates, faults, interference, careless }: Plan): boolean {
  return (
    rates.requestLost + rates.replyLost + rates.delayed === 0 &&
    faults.length === 0 &&
    interference === undefined &&
    careless === 0
  );
}

export function drawPlan(seed: number): Plan {
  const random = new Random(seed);
  const leaseMs = random.pick([200, 400, 1_000]);
  const troubleMs = random.pick([600, 1_500, 3_000]);
  const keys = ["a", "b", "c", "d"].slice(0, random.between(1, 4));
  const processes = Array.from({ length: random.between(2, 3) }, () => random.between(1, 3));
  const calm = random.chance(0.1);
  const replicas = random.chance(0.2) ? 3 : 1;
  const plan: Plan = {
    seed,
    leaseMs,
    keys,
    processes,
    runs: 1,
    replicas,
    stale: replicas > 1 ? random.pick([0, 0.3, 0.9]) : 0,
    lateMs: calm ? 0 : random.pick([0, 0, 100]),
    wallShiftMs: random.pick([0, 0, 0, 30]),
    troubleMs,
    rates: calm ? { ...CALM_RATES, slowestMs: random.pick([0.5, 1, 5]) } : drawRates(random.fork(), leaseMs),
    careless: calm ? 0 : random.pick([0, 0.1, 0.3]),
    plain: false,
    together: seed % 3 === 0,
    deeds: drawDeeds(random.fork(), keys, leaseMs, troubleMs),
    faults: calm ? [] : drawFaults(random.fork(), leaseMs, troubleMs),
    interference: undefined,
  };
  // Not drawn: every other seed tells the story that it always told.
  if (seed % 4 === 3) return { ...plan, runs: 4, deeds: plan.deeds.map(denser) };
  if (seed % 2 === 1) return plan;
  const fresh = keys.flatMap((key) => Array.from({ length: NEW_KEYS }, (_, time) => key + time));
  const deeds = plan.deeds.map((deed) => plainer(deed, troubleMs));
  const runs = seed % 8 === 6 ? 4 : 1;
  return { ...plan, runs, plain: true, keys: [...keys, ...fresh], deeds };
}

/** Several items of a key and level, one behind the other, that take little time. */
function denser({ at, process, what }: Timed<Deed>): Timed<Deed> {
  if (what.type !== "submit") return { at, process, what };
  const quick = (item: ItemPlan): ItemPlan => ({ ...item, leases: item.leases / QUICKER });
  const next = (item: ItemPlan): ItemPlan => ({ ...quick(item), id: undefined, failures: [], mode: "fifo" });
  const dense = (item: ItemPlan): ItemPlan[] =>
    item.delayMs > 0 ? [quick(item)] : [next(item), quick(item), next(item)];
  return { at, process, what: { ...what, items: what.items.flatMap(dense) } };
}

/** Than the handlers of other plans. */
const QUICKER = 5;
/** How often, in one run, all keys are new ones. */
const NEW_KEYS = 6;

/** The same with plain items, on keys that nobody has used yet. */
function plainer({ at, process, what }: Timed<Deed>, troubleMs: number): Timed<Deed> {
  const fresh = (key: string): string => `${key}${Math.floor((at / troubleMs) * NEW_KEYS)}`;
  const plain = (item: ItemPlan): ItemPlan =>
    item.delayMs > 0 || item.big ? item : { ...item, key: fresh(item.key), id: undefined, keeps: false };
  switch (what.type) {
    case "submit":
      return { at, process, what: { ...what, items: what.items.map(plain) } };
    case "hold":
      return { at, process, what: { ...what, key: fresh(what.key) } };
    case "pause":
      return { at, process, what: { ...what, key: what.key === undefined ? undefined : fresh(what.key) } };
    case "cancel":
      return { at, process, what };
  }
}

function drawRates(random: Random, leaseMs: number): LineRates {
  return {
    slowestMs: random.pick([0.5, 2, 10, leaseMs / 10]),
    delayMs: leaseMs * random.pick([0.5, 1.5]),
    delayed: random.pick([0, 0, 0.01, 0.03]),
    requestLost: random.pick([0, 0, 0, 0.005]),
    replyLost: random.pick([0, 0, 0, 0.005]),
  };
}

function drawDeeds(random: Random, keys: readonly string[], leaseMs: number, troubleMs: number): Timed<Deed>[] {
  const deeds: Timed<Deed>[] = [];
  const add = (what: Deed): void =>
    void deeds.push({ at: random.next() * troubleMs, process: random.between(0, 100), what });
  const delays = random.chance(0.5) ? 0.1 : 0;
  const odd = random.pick([0, 0, 0.15]);
  const ids = random.pick([0.1, 0.5]);
  const big = random.pick([0, 0, 0.2, 0.8]);
  for (let count = random.between(4, 14); count > 0; count -= 1) {
    const size = random.pick([1, 1, 1, 2, 4]);
    const same = random.chance(0.5) ? random.pick(keys) : undefined;
    const items = Array.from({ length: size }, () =>
      drawItem(random, same ?? random.pick(keys), leaseMs, { delays, odd, ids, big }),
    );
    add({ type: "submit", items });
  }
  const some = (most: number, make: () => Deed): void => {
    for (let count = random.pick([0, 0, random.between(1, most)]); count > 0; count -= 1) add(make());
  };
  some(4, () => ({ type: "cancel", pick: random.next() }));
  some(1, () => ({ type: "hold", key: random.pick(keys), waitMs: 0, forMs: random.next() * leaseMs * 2 }));
  some(3, () => ({
    type: "hold",
    key: random.pick(keys),
    waitMs: random.next() * leaseMs * 3,
    forMs: random.next() * leaseMs * 2,
  }));
  some(2, () => ({ type: "pause", key: random.pick(keys), forMs: random.next() * leaseMs }));
  some(1, () => ({ type: "pause", key: undefined, forMs: random.next() * leaseMs }));
  return deeds;
}

function drawItem(
  random: Random,
  key: string,
  leaseMs: number,
  {
    delays,
    odd,
    ids,
    big,
  }: { readonly delays: number; readonly odd: number; readonly ids: number; readonly big: number },
): ItemPlan {
  const id = random.chance(ids) ? `id${random.between(1, 8)}-${key}` : undefined;
  return {
    key,
    level: random.pick([0, 1, 1, 2]),
    id,
    mode: random.chance(odd) ? random.pick<Mode>(["latest", "strict"]) : "fifo",
    delayMs: random.chance(delays) ? random.next() * leaseMs : 0,
    keeps: id !== undefined || random.chance(0.4),
    big: random.chance(big),
    failures: random.chance(0.25)
      ? Array.from({ length: random.between(1, 2) }, () => drawFailing(random, leaseMs))
      : [],
    leases: random.pick([0, 0.02, 0.1, 0.1, 0.5, 1.2]),
  };
}

function drawFailing(random: Random, leaseMs: number): Failing {
  if (random.chance(0.15)) return { type: "dead" };
  if (random.chance(0.2)) return { type: "release" };
  return {
    type: "retry",
    place: random.chance(0.3) ? "yield" : "keep",
    delayMs: random.pick([0, 10, leaseMs / 2]),
  };
}

function drawFaults(random: Random, leaseMs: number, troubleMs: number): Timed<Fault>[] {
  const faults: Timed<Fault>[] = [];
  const notices = (): number => random.pick([0, 0, 50, leaseMs * 2]);
  const some = (chance: number, most: number, make: () => Fault): void => {
    if (!random.chance(chance)) return;
    for (let count = random.between(1, most); count > 0; count -= 1)
      faults.push({ at: random.next() * troubleMs, process: random.between(0, 100), what: make() });
  };
  some(0.4, 2, () => ({ type: "crash", sent: random.pick(["lost", "arrives"]), serverNoticesMs: notices() }));
  some(0.35, 2, () => ({ type: "stop", forMs: leaseMs * random.pick([0.3, 1.2, 2.5]) }));
  some(0.35, 2, () => ({
    type: "cut",
    forMs: leaseMs * random.pick([0.1, 0.5, 2]),
    clientNoticesMs: notices(),
    serverNoticesMs: notices(),
  }));
  some(0.15, 1, () => ({
    type: "restart",
    downMs: random.pick([0, 50, leaseMs]),
    forgetAcksMs: random.pick([0, 0, 100]),
    inWrite: random.chance(0.5),
  }));
  some(0.1, 1, () => ({ type: "step", byMs: random.pick([-40, 40, 2_000]) }));
  some(0.2, 4, () => ({ type: "delete", consumer: random.pick([0, 1, 1, 2, 3]) }));
  return faults;
}
