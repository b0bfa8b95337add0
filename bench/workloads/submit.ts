import type { Line } from "../item.ts";
import type { Metric, Workload } from "../workload.ts";

const RATE: Metric = { name: "rate", title: "", unit: "items/s", better: "higher" };

/** The first calls make connections and compile code. */
const WARM_UP = { count: 10_000, boxMs: 200 };

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
    async measure({ producer }, { boxMs, submitItems }) {
      const line = lineOf(submitItems);
      await producer.call("submit", { line, inFlight, ...WARM_UP });
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
  async measure({ producer }, { boxMs, submitItems }) {
    const line = lineOf(submitItems);
    const task = { line, bulk: 500, boxMs };
    await producer.call("load", { ...task, ...WARM_UP });
    const { count, ms } = await producer.call("load", { ...task, count: submitItems });
    return { values: { rate: (count / ms) * 1_000 } };
  },
};

export const submitWorkloads: readonly Workload[] = [
  submitting("submit-one", "submit, one by one", 1),
  submitting("submit-256", "submit, 256 in flight", 256),
  bulk,
];
