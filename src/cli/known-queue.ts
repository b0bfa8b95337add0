import { type Baton, BatonError, type Queue, type QueueReport } from "../index.ts";
import type { GlobalFlags } from "./flags.ts";
import { noStoreYet, openExistingStore } from "./store.ts";

/** A queue that somebody has used before, on an open connection: looking at one must not make it. */
export interface KnownQueue extends AsyncDisposable {
  readonly queue: Queue<unknown>;
  readonly report: QueueReport;
}

export async function openKnownQueue(name: string, flags: GlobalFlags): Promise<KnownQueue> {
  const baton = await openExistingStore(flags);
  if (baton === undefined) throw noStoreYet(flags);
  try {
    const { queue, report } = await findQueue(baton, name);
    return { queue, report, [Symbol.asyncDispose]: () => baton.close() };
  } catch (error) {
    await baton.close();
    throw error;
  }
}

export async function findQueue(baton: Baton, name: string): Promise<{ queue: Queue<unknown>; report: QueueReport }> {
  // Asked first, because it refuses a name that no queue can have, and says why.
  const queue = baton.queue(name);
  const reports = await baton.queues();
  const report = reports.find((one) => one.queue === name);
  if (report !== undefined) return { queue, report };
  const others = reports.map((one) => one.queue).slice(0, 10);
  throw new BatonError(
    "NOT_FOUND",
    `There is no queue "${name}" in this store. ` +
      (others.length === 0 ? "It has none yet; the first submission makes one." : `It has: ${others.join(", ")}.`),
  );
}
