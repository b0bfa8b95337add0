import { isOpen } from "./claim.ts";
import type { News } from "./messages.ts";
import type { Transaction } from "./transaction.ts";

/** What a transaction that is committed has to tell, if anything. */
export function newsOf(tx: Transaction): readonly News[] {
  const { stirred, later, deleted, lost, ended, opened } = tx;
  const work = new Map<number, number>();
  for (const key of opened) if (isOpen(key)) work.set(key.queue, (work.get(key.queue) ?? 0) + 1);
  for (const queue of later) work.set(queue, (work.get(queue) ?? 0) + 1);
  if (work.size + stirred.size + deleted.size + lost.length + ended.length === 0) return [];
  const name = (queue: number): string => tx.queues.get(queue).name;
  const ids = new Map<number, string[]>();
  for (const { queue, id } of ended) {
    const known = ids.get(queue);
    if (known === undefined) ids.set(queue, [id]);
    else known.push(id);
  }
  return [
    {
      work: [...work].map(([queue, count]) => [name(queue), count]),
      stirred: [...Array.from(stirred, name), ...deleted],
      ended: [...ids].map(([queue, all]) => [name(queue), all]),
      lost: [...lost],
    },
  ];
}
