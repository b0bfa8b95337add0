/** Items that were submitted beforehand, worked off by one process: with a key per item, and with keys that have lines. */
import type { WorkResult } from "../child/working.ts";
import type { Line, Order } from "../item.ts";
import type { Sizes } from "../sizes.ts";
import type { Measured, Metric, Workload } from "../workload.ts";
import { loadAll } from "./loading.ts";

const RATE: Metric = { name: "rate", title: "", unit: "items/s", better: "higher" };
const KEYED_CONCURRENCY = 64;
/** A third of what there is, so that a small count leaves something to be measured. */
function warmUpOf(items: number): number {
  return Math.floor(items / 3);
}

function draining(concurrency: number): Workload {
  return {
    name: `drain-${concurrency}`,
    group: "drain",
    title: `drain, concurrency ${concurrency}`,
    exclusive: false,
    metrics: () => [RATE],
    async measure(scene, { drainItems: items, boxMs, warmUpMs }) {
      await loadAll(scene, { order: "distinct", keys: items, total: items });
      const result = await scene.worker.call("work", {
        concurrency,
        expect: "backlog",
        count: items,
        boxMs,
        warmUp: { count: warmUpOf(items), boxMs: warmUpMs },
        exclusive: false,
      });
      return rateOf(result);
    },
  };
}

function keyed(order: Order, words: string): Workload {
  return {
    name: `keyed-${order}`,
    group: "keyed",
    title: `keyed exclusive, ${words}`,
    exclusive: true,
    extra: order === "round-robin",
    metrics: () => [RATE],
    async measure(scene, { items, keys, keyedBoxMs, warmUpMs }) {
      await loadAll(scene, { order, keys, total: items });
      const result = await scene.worker.call("work", {
        concurrency: KEYED_CONCURRENCY,
        expect: "backlog",
        count: items,
        boxMs: keyedBoxMs,
        warmUp: { count: warmUpOf(items), boxMs: warmUpMs },
        exclusive: true,
      });
      return rateOf(result);
    },
  };
}

/** Fewer keys than slots, so that a key waits for nothing but itself. */
const NEXT: Line = { order: "round-robin", keys: 8, total: 800 };

const next: Workload = {
  name: "next-of-key",
  group: "next",
  title: "end of an item → start of the key's next",
  exclusive: true,
  metrics: () => [{ name: "p50", title: "p50", unit: "ms", better: "lower" }],
  async measure(scene, { keyedBoxMs }) {
    await loadAll(scene, NEXT);
    const result = await scene.worker.call("work", {
      concurrency: KEYED_CONCURRENCY,
      expect: "backlog",
      count: NEXT.total,
      boxMs: keyedBoxMs,
      exclusive: true,
      handlerMs: 1,
    });
    return { ...rateOf(result), values: result.gapMs === undefined ? {} : { p50: result.gapMs } };
  },
};

export function rateOf(result: WorkResult): Measured {
  const remarks = remarksOn(result);
  return { values: { rate: (result.handled / result.ms) * 1_000 }, remarks, broken: remarks.length > 0 };
}

export function remarksOn({ seen, duplicates, overlaps, outOfOrder }: WorkResult): readonly string[] {
  const of = (count: number, what: string): string[] =>
    count === 0 ? [] : [`${count.toLocaleString("en")} of ${seen.toLocaleString("en")} ${what}`];
  return [
    ...of(duplicates, "handled twice"),
    ...of(overlaps, "while another of the key ran"),
    ...of(outOfOrder, "out of order"),
  ];
}

export function drainWorkloads({ concurrencies }: Sizes): readonly Workload[] {
  return concurrencies.map(draining);
}

export const keyedWorkloads: readonly Workload[] = [
  keyed("round-robin", "round-robin"),
  keyed("random", "random"),
  keyed("clustered", "clustered"),
  keyed("skewed", "80/20"),
  next,
];
