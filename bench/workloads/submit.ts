import type { Line } from "../item.ts";
import type { Metric, Workload } from "../workload.ts";
import { BULK } from "./loading.ts";

const RATE: Metric = { name: "rate", title: "", unit: "items/s", better: "higher" };

/** The quickest have done a quarter before their time is over. */
function warmUpOf(items: number): number {
  return items / 4;
}

function lineOf(total: number): Line {
  return { order: "distinct", keys: total, total };
}

function submitting(name: string, title: string, inFlight: number): Workload {
  return {
    name,
    group: "submit",
    title,
    exclusive: false,
    metrics: () => [RATE],
    async measure({ producer }, { boxMs, warmUpMs, submitItems }) {
      const line = lineOf(submitItems);
      await producer.call("submit", { line, inFlight, count: warmUpOf(submitItems), boxMs: warmUpMs });
      const { count, ms } = await producer.call("submit", { line, inFlight, count: submitItems, boxMs });
      return { values: { rate: (count / ms) * 1_000 } };
    },
  };
}

const bulk: Workload = {
  name: "submit-bulk",
  group: "submit",
  title: "submit, bulk of 500",
  exclusive: false,
  metrics: () => [RATE],
  async measure({ producer }, { boxMs, warmUpMs, submitItems }) {
    const line = lineOf(submitItems);
    await producer.call("load", { line, bulk: BULK, count: warmUpOf(submitItems), boxMs: warmUpMs });
    const { count, ms } = await producer.call("load", { line, bulk: BULK, count: submitItems, boxMs });
    return { values: { rate: (count / ms) * 1_000 } };
  },
};

export const submitWorkloads: readonly Workload[] = [
  submitting("submit-one", "submit, one by one", 1),
  submitting("submit-256", "submit, 256 in flight", 256),
  bulk,
];
