import type { TestContext } from "node:test";
import { Random } from "../../kit/random.ts";
import { again, type Seeds } from "../../kit/seeds.ts";
import { shrinkEntries, shrinkLists } from "../../kit/shrink.ts";
import { Comparisons, type Difference } from "./compare.ts";
import { differences } from "./differences.ts";
import { readable } from "./readable.ts";
import { makeScript } from "./generator.ts";
import { Handles } from "./handles.ts";
import type { Burst, Script } from "./script.ts";
import type { Store } from "./store.ts";

const HANDLES = 3;
/** A failure is made short for so long at most: to play a script takes as long as its waits. */
const SHRINK_MS = 60_000;
/** So many shorter ones are tried side by side: most of a script is waiting. */
const SHRINK_AT_ONCE = 8;

/** Plays random scripts on the store, many side by side, and holds each answer against that of the memory engine. */
export async function playSequential(context: TestContext, store: Store, seeds: Seeds): Promise<void> {
  const shared = await Handles.opened(HANDLES, () => store.open());
  try {
    const comparisons = new Comparisons(store, shared);
    const ability = { ...store.allowance, runs: shared.at(0).runs === true };
    const left = seeds[Symbol.iterator]();
    let late = 0;
    let failed: Failed | undefined;
    const lane = async (): Promise<void> => {
      for (let next = left.next(); next.done !== true && failed === undefined; next = left.next()) {
        const seed: number = next.value;
        const script = makeScript(new Random(seed), ability);
        const verdict = await comparisons.compare(script);
        if (verdict.type === "late") late += 1;
        if (verdict.type === "different") failed ??= { seed, script, found: verdict };
      }
    };
    await Promise.all(Array.from({ length: store.atOnce }, lane));
    seeds.tell(context, `scripts on ${store.name}`);
    if (late > 0) context.diagnostic(`${late} of them were not played to their end, because the machine was slow`);
    if (failed !== undefined) throw new Error(await told(store, comparisons, failed));
  } finally {
    await shared.close();
  }
}

async function told(store: Store, comparisons: Comparisons, { seed, script, found }: Failed): Promise<string> {
  const smallest = await shrunk(comparisons, { ...script, bursts: script.bursts.slice(0, found.burst + 1) }, found);
  const steps = smallest.script.bursts.map((burst) => readable(burst)).join("\n");
  const lines = differences(smallest.found.model, smallest.found.store, smallest.found.toleranceMs).join("\n  ");
  const place =
    smallest.found.burst === smallest.script.bursts.length ? "at the end" : `in burst ${smallest.found.burst + 1}`;
  return (
    `The memory engine and ${store.name} differ ${place}; ${again(seed)}. The shortest script that shows it, with levels ` +
    `${smallest.script.levels.join(", ")}${script.ownHandles ? " and handles of its own" : ""}:\n${steps}\n  ${lines}`
  );
}

interface Failed {
  readonly seed: number;
  readonly script: Script;
  readonly found: Difference;
}

interface Smallest {
  readonly script: Script;
  readonly found: Difference;
}

async function shrunk(comparisons: Comparisons, script: Script, found: Difference): Promise<Smallest> {
  let smallest: Smallest = { script, found };
  const end = performance.now() + SHRINK_MS;
  const fails = async (bursts: readonly Burst[]): Promise<boolean> => {
    if (performance.now() > end) return false;
    const shorter = { ...script, bursts };
    const verdict = await comparisons.compareToTheEnd(shorter);
    if (verdict.type === "different") smallest = { script: shorter, found: verdict };
    return verdict.type === "different";
  };
  const bursts = await shrinkLists(script.bursts, fails, SHRINK_AT_ONCE);
  await shrinkEntries(bursts, fails, SHRINK_AT_ONCE);
  return smallest;
}
