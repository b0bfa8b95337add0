/** What runs with many processes have in common: waiting for the end, and asking the store for its last word. */
import { setTimeout as wait } from "node:timers/promises";
import type { Baton } from "../../../src/index.ts";
import { type Fact, now, readHistory, recorder } from "./history.ts";
import { until } from "../../kit/until.ts";
import { QUEUE } from "./settings.ts";

const LOOK_MS = 50;

/** Waits until nothing is left, and says how long that took, or that it takes too long. */
export async function drained(baton: Baton, withinMs: number): Promise<number> {
  const from = now();
  for (;;) {
    const status = await baton.queue(QUEUE).status();
    const { waiting, delayed, running } = status;
    if (waiting + delayed + running === 0) return now() - from;
    if (now() - from > withinMs) throw new Error(`Not drained after ${withinMs} ms: ${JSON.stringify(status)}`);
    await wait(LOOK_MS);
  }
}

/** Waits until a process has written down such a fact. */
export async function fact(desk: { readonly folder: string }, matches: (fact: Fact) => boolean): Promise<Fact> {
  return await until(() => readHistory(desk.folder).find(matches), "a fact in the histories");
}

/** The store's last word on each item, added to the history. */
export async function recordFinals(
  baton: Baton,
  folder: string,
  items: readonly { readonly item: string }[] = submittedIn(folder),
): Promise<void> {
  const record = recorder(folder, "store");
  const cars = baton.queue(QUEUE);
  await Promise.all(
    items.map(async ({ item }) => {
      const state = (await cars.item(item))?.state ?? "unknown";
      record({ type: "final", at: now(), item, state });
    }),
  );
}

function submittedIn(folder: string): readonly { readonly item: string }[] {
  return readHistory(folder).filter((one) => one.type === "submitted");
}

export function summary(history: readonly Fact[]): string {
  const count = (type: Fact["type"]): number => history.filter((one) => one.type === type).length;
  const again = history.filter((one) => one.type === "began" && one.attempt > 1).length;
  return `${count("submitted")} items, ${count("began")} runs (${again} again), ${count("refused")} refused`;
}
