/** What an item costs while ever more are waiting. One store is filled from level to level. */
import type { Line } from "../item.ts";
import { median } from "../report/statistics.ts";
import type { Scene } from "../scene.ts";
import type { Sizes } from "../sizes.ts";
import type { Metric, Workload } from "../workload.ts";
import { BULK } from "./loading.ts";

/** So many say how fast a subject loads. */
const ENOUGH_TO_TELL = 10_000;
/** What is submitted and worked off again in one cycle: several of the largest batches that a subject takes at once. */
const CYCLE_ITEMS = 3_000;
/** Not counted, so that a subject that has fetched a batch before the clock starts gains nothing by it. */
const CYCLE_WARM_UP = 1_000;
const CYCLE_MS = 300;
/** For what has to be there before it can be worked off. */
const LONG_ENOUGH_MS = 10_000;
const IN_FLIGHT = 256;
/** Calls of a bulk each at the same time, while loading: a million would take some peers minutes otherwise. */
const LOADING_CALLS = 2;
/** So many are asked of the producer at once: a task of a child may not take more than two minutes. */
const SLICE = 100_000;
const CONCURRENCY = 64;

/** In microseconds per item, of each cycle. */
interface Costs {
  readonly submit: readonly number[];
  readonly work: readonly number[];
}

function backlog(name: string, words: string, exclusive: boolean, lineOf: (sizes: Sizes) => Line): Workload {
  return {
    name,
    group: "backlog",
    title: `backlog, ${words}`,
    exclusive,
    long: true,
    extra: !exclusive,
    metrics: ({ levels }) => [
      ...levels.flatMap((level) => [cost("submit", level), cost("work", level)]),
      growth("submit"),
      growth("work"),
    ],
    async measure(scene, sizes) {
      const { levels, loadMs, cycles: times } = sizes;
      const line = lineOf(sizes);
      const values: Record<string, readonly number[]> = {};
      const remarks: string[] = [];
      let waiting = 0;
      let first: Costs | undefined;
      const loader = new Loader(scene, line, loadMs);
      for (const level of levels) {
        waiting += await loader.load(level - waiting);
        if (waiting < level) {
          remarks.push(`${level.toLocaleString("en")} waiting: cannot be reached in ${loadMs / 1_000} s of loading`);
          break;
        }
        // The first level would pay for compiling the code, and growth would look like shrinking.
        if (first === undefined) waiting += (await cycles(Math.ceil(times / 2), scene, line, exclusive)).left;
        const { costs, left } = await cycles(times, scene, line, exclusive);
        waiting += left;
        values[`submit-${level}`] = costs.submit;
        values[`work-${level}`] = costs.work;
        first ??= costs;
        if (level === levels[0]) continue;
        values["submit-growth"] = growthOf(first.submit, costs.submit);
        values["work-growth"] = growthOf(first.work, costs.work);
      }
      return { values, remarks };
    },
  };
}

/** Against the median of the first level, so that each cycle says how it compares. */
function growthOf(first: readonly number[], last: readonly number[]): readonly number[] {
  const base = median(first);
  return last.map((one) => one / base);
}

/** Fills the store, but does not begin what cannot end in time. */
class Loader {
  readonly #scene: Scene;
  readonly #line: Line;
  #leftMs: number;
  #msPerItem = 0;

  constructor(scene: Scene, line: Line, leftMs: number) {
    this.#scene = scene;
    this.#line = line;
    this.#leftMs = leftMs;
  }

  async load(count: number): Promise<number> {
    let done = 0;
    while (done < count && (count - done) * this.#msPerItem <= this.#leftMs && this.#leftMs > 0) {
      const task = { line: this.#line, bulk: BULK, calls: LOADING_CALLS, count: Math.min(count - done, SLICE) };
      const loaded = await this.#scene.producer.call("load", { ...task, boxMs: this.#leftMs });
      done += loaded.count;
      this.#leftMs -= loaded.ms;
      if (loaded.count >= ENOUGH_TO_TELL) this.#msPerItem = loaded.ms / loaded.count;
    }
    if (done > 0) await this.#scene.rest();
    return done;
  }
}

async function cycles(
  times: number,
  scene: Scene,
  line: Line,
  exclusive: boolean,
): Promise<{ costs: Costs; left: number }> {
  const submit: number[] = [];
  const work: number[] = [];
  let left = 0;
  for (let cycle = 0; cycle < times; cycle += 1) {
    const task = { line, count: CYCLE_ITEMS, boxMs: CYCLE_MS };
    const submitted = await scene.producer.call("submit", { ...task, inFlight: IN_FLIGHT });
    const rest = { line, count: CYCLE_ITEMS - submitted.count, boxMs: LONG_ENOUGH_MS, bulk: BULK };
    const topped = await scene.producer.call("load", rest);
    const worked = await scene.worker.call("work", {
      ...task,
      concurrency: CONCURRENCY,
      expect: "backlog",
      warmUp: { count: CYCLE_WARM_UP, boxMs: CYCLE_MS },
      exclusive,
    });
    submit.push((submitted.ms / submitted.count) * 1_000);
    // A cycle in which nothing was handled after the warm-up has no cost, and an endless one would say nothing.
    if (worked.handled > 0) work.push((worked.ms / worked.handled) * 1_000);
    left += submitted.count + topped.count - worked.seen;
  }
  if (work.length === 0) throw new Error("nothing was handled in the time of a cycle");
  return { costs: { submit, work }, left };
}

const WORDS = { submit: "submit", work: "claim and settle" } as const;

function cost(step: "submit" | "work", level: number): Metric {
  return {
    name: `${step}-${level}`,
    title: `${WORDS[step]}, ${level.toLocaleString("en")} waiting`,
    unit: "µs/item",
    better: "lower",
  };
}

function growth(step: "submit" | "work"): Metric {
  return {
    name: `${step}-growth`,
    title: `${WORDS[step]}: growth to the last level`,
    unit: "×",
    better: "lower",
  };
}

export const backlogWorkloads: readonly Workload[] = [
  backlog("backlog-keyed", "1,000 keys", true, ({ keys }) => ({ order: "random", keys, total: 0 })),
  backlog("backlog-distinct", "a key per item", false, () => ({ order: "distinct", keys: 0, total: 0 })),
];
