import { MOST_ENTRIES } from "./desk.ts";
import { together } from "./together.ts";

/** Entries of several queues, each with those of its own queue, in pieces that do not keep the server for long. Results in the order of the entries. */
export function inPieces<T extends { readonly queue: string }, R>(
  entries: readonly T[],
  work: (queue: string, some: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const [first] = entries;
  if (first === undefined) return Promise.resolve([]);
  // Nearly always there is one piece; to split it costs as much as to submit an item.
  const isOne = entries.length <= MOST_ENTRIES && entries.every(({ queue }) => queue === first.queue);
  return isOne ? work(first.queue, entries) : inSeveral(entries, work);
}

async function inSeveral<T extends { readonly queue: string }, R>(
  entries: readonly T[],
  work: (queue: string, some: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const pieces: { readonly queue: string; readonly positions: number[]; readonly some: T[] }[] = [];
  const current = new Map<string, (typeof pieces)[number]>();
  for (const [position, entry] of entries.entries()) {
    let piece = current.get(entry.queue);
    if (piece === undefined || piece.some.length === MOST_ENTRIES) {
      piece = { queue: entry.queue, positions: [], some: [] };
      current.set(entry.queue, piece);
      pieces.push(piece);
    }
    piece.positions.push(position);
    piece.some.push(entry);
  }
  const answers = await together(pieces.map(({ queue, some }) => work(queue, some)));
  const results: R[] = [];
  for (const [index, { positions }] of pieces.entries()) {
    for (const [at, result] of (answers[index] ?? []).entries()) {
      const position = positions[at];
      if (position !== undefined) results[position] = result;
    }
  }
  return results;
}
