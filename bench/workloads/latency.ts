import { median, quantile } from "../report/statistics.ts";
import type { Scene } from "../scene.ts";
import type { Measured, Metric, Workload } from "../workload.ts";

function percentiles(words: string = ""): readonly Metric[] {
  return [
    { name: "p50", title: `${words}p50`, unit: "ms", better: "lower" },
    { name: "p99", title: `${words}p99`, unit: "ms", better: "lower" },
  ];
}

function measured(latencies: readonly number[]): Measured {
  return { values: { p50: median(latencies), p99: quantile(latencies, 0.99) } };
}

const oneProcess: Workload = {
  name: "latency-one",
  group: "latency",
  title: "submit → handler starts, idle, one process",
  exclusive: false,
  extra: true,
  metrics: () => percentiles(),
  async measure({ producer }, { latencyMs, warmUpMs }) {
    return measured(await producer.call("latencyAlone", { boxMs: latencyMs, warmUpMs }));
  },
};

const twoProcesses: Workload = {
  name: "latency-two",
  group: "latency",
  title: "submit → handler starts, idle, two processes",
  exclusive: false,
  metrics: () => percentiles(),
  async measure(scene, { latencyMs, warmUpMs }) {
    await begin(scene, 1);
    const knocked = await scene.producer.call("knock", { boxMs: latencyMs, warmUpMs });
    return measured(await scene.worker.call("heard", knocked));
  },
};

async function begin({ producer, worker }: Scene, concurrency: number): Promise<void> {
  await worker.call("listen", concurrency);
  await producer.call("greet");
  await worker.call("up");
}

const CONCURRENCY = 16;
/** Two of the boxes of an idle measurement: the first is spent on reaching a steady state, and not counted. */
const BOXES = 2;
/** So much longer than planned may the submissions take before it is said. */
const LATE = 1.2;

const loaded: Workload = {
  name: "latency-loaded",
  group: "latency",
  title: "submit → handler starts, loaded",
  exclusive: false,
  metrics: ({ rate }) => percentiles(`${rate} items a second, `),
  async measure(scene, { latencyMs, rate }) {
    const boxMs = latencyMs * BOXES;
    await begin(scene, CONCURRENCY);
    const { items, ms } = await scene.producer.call("stream", { boxMs, rate });
    const skip = Math.floor(items / BOXES);
    const latencies = await scene.worker.call("heard", { items, skip });
    const late = ms > boxMs * LATE ? [`took ${Math.round((items / ms) * 1_000)} of ${rate} items a second`] : [];
    // They are not waited for, but nor are they kept quiet: without them the figures are better than the truth.
    const missed = items - skip - latencies.length;
    const open = missed > 0 ? [`${missed.toLocaleString("en")} items had not started 3 s after the last`] : [];
    return { ...measured(latencies), remarks: [...late, ...open] };
  },
};

export const latencyWorkloads: readonly Workload[] = [oneProcess, twoProcesses, loaded];
