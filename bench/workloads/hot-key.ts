import type { Child } from "../child/child.ts";
import type { WorkResult } from "../child/working.ts";
import type { Line } from "../item.ts";
import type { Workload } from "../workload.ts";
import { BULK, loadAll } from "./loading.ts";
import { remarksOn } from "./working-off.ts";

const OTHERS = 5_000;
/** It is busy all the time, and takes no noticeable share of the machine. */
const HOT = { key: "hot-0", handlerMs: 20 };

/** How the others fare beside a key with a long line. */
export const hotKeyWorkload: Workload = {
  name: "hot-key",
  group: "hot-key",
  title: "one hot key",
  exclusive: true,
  metrics: ({ hot }) => [
    { name: "without", title: "other keys, without it", unit: "items/s", better: "higher" },
    { name: "with", title: `other keys, ${hot.toLocaleString("en")} waiting on it`, unit: "items/s", better: "higher" },
    { name: "slower", title: "other keys: times slower with it", unit: "×", better: "lower" },
  ],
  async measure(scene, { hot, keys, keyedBoxMs, loadMs }) {
    const others = (prefix: string, from: number): Line => ({ order: "random", keys, total: OTHERS, prefix, from });
    const work = (worker: Child): Promise<WorkResult> =>
      worker.call("work", {
        concurrency: 16,
        expect: "backlog",
        count: OTHERS,
        boxMs: keyedBoxMs,
        exclusive: true,
        hotKey: HOT,
      });

    await loadAll(scene, others("cool-", 0));
    const before = await work(scene.worker);
    const line: Line = { order: "round-robin", keys: 1, total: hot, prefix: "hot-", from: OTHERS };
    const loaded = await scene.producer.call("load", { line, bulk: BULK, count: hot, boxMs: loadMs });
    await loadAll(scene, others("calm-", OTHERS + hot));
    const beside = await work(scene.worker);

    const values = {
      without: (before.handled / before.ms) * 1_000,
      with: (beside.handled / beside.ms) * 1_000,
    };
    const broken = [...remarksOn(before), ...remarksOn(beside)];
    const short = loaded.count < hot ? [`only ${loaded.count.toLocaleString("en")} on the hot key`] : [];
    const starved = beside.handled === 0 ? ["no item of another key was handled beside it"] : [];
    return {
      values: starved.length === 0 ? { ...values, slower: values.without / values.with } : values,
      remarks: [...broken, ...short, ...starved],
      broken: broken.length > 0,
    };
  },
};
