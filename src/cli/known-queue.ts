import { type Baton, BatonError, nearestName, type Queue, type QueueReport } from "../index.ts";
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
  const [report] = await baton.queues({ queue: name });
  if (report !== undefined) return { queue, report };
  const others = (await othersIn(baton, name)) ?? "It has none yet; the first submission makes one.";
  throw new BatonError("NOT_FOUND", `There is no queue "${name}" in this store. ${others}`);
}

const MOST_NAMED = 10;

/** What somebody may have meant who named a queue that is not there: a sentence. Undefined: there are no others. */
export async function othersIn(baton: Baton, name: string): Promise<string | undefined> {
  const others = (await baton.queues()).map(({ queue }) => queue).filter((queue) => queue !== name);
  if (others.length === 0) return undefined;
  const nearest = nearestName(name, others);
  if (nearest !== undefined) return `Did you mean ${nearest}?`;
  const more = others.length > MOST_NAMED ? `, and ${others.length - MOST_NAMED} more` : "";
  return `It has: ${others.slice(0, MOST_NAMED).join(", ")}${more}.`;
}
