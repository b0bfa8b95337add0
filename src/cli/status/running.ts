import type { KeyReport, Queue } from "../../index.ts";

/** More than fit on any screen; `baton keys` lists them all. */
const MOST_SHOWN = 1_000;

/** The keys in work. */
export async function findRunning(queue: Queue<unknown>): Promise<readonly KeyReport[]> {
  return queue.keys({ leased: true, limit: MOST_SHOWN });
}
