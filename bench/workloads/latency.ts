import { median, quantile } from "../report/statistics.ts";
import type { Measured, Metric, Workload } from "../workload.ts";

const METRICS: readonly Metric[] = [
  { name: "p50", title: "p50", unit: "ms", better: "lower" },
  { name: "p99", title: "p99", unit: "ms", better: "lower" },
];

function measured(latencies: readonly number[]): Measured {
  return { values: { p50: median(latencies), p99: quantile(latencies, 0.99) } };
}

const oneProcess: Workload = {
  name: "latency-one",
  group: "latency",
  title: "submit → handler starts, idle, one process",
  exclusive: false,
  metrics: () => METRICS,
  async measure({ producer }, { latencyMs }) {
    return measured(await producer.call("latencyAlone", { boxMs: latencyMs }));
  },
};

const twoProcesses: Workload = {
  name: "latency-two",
  group: "latency",
  title: "submit → handler starts, idle, two processes",
  exclusive: false,
  metrics: () => METRICS,
  async measure({ producer, worker }, { latencyMs }) {
    await worker.call("listen");
    const items = await producer.call("knock", { boxMs: latencyMs });
    return measured(await worker.call("heard", items));
  },
};

export const latencyWorkloads: readonly Workload[] = [oneProcess, twoProcesses];
