import type { Workload } from "../workload.ts";
import { loadAll } from "./loading.ts";

/** A worker that has just begun holds more for a moment. */
const SETTLE_MS = 1_000;

export const memoryWorkload: Workload = {
  name: "memory",
  group: "memory",
  title: "memory",
  exclusive: false,
  metrics: ({ waiting }) => [
    {
      name: "total",
      title: `${waiting.toLocaleString("en")} waiting, server and worker`,
      unit: "MiB",
      better: "lower",
    },
    { name: "worker", title: "of it the worker", unit: "MiB", better: "lower" },
  ],
  async measure(scene, { waiting }) {
    await loadAll(scene, { order: "distinct", keys: waiting, total: waiting });
    await scene.producer.end();
    const worker = await scene.worker.call("hold", { concurrency: 16, settleMs: SETTLE_MS });
    return { values: { total: worker + (scene.serverMemory() ?? 0), worker } };
  },
};
