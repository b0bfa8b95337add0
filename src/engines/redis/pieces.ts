import { MOST_ENTRIES } from "./desk.ts";
import { together } from "./together.ts";

interface Piece<T> {
  readonly queue: string;
  /** Where its entries stood. */
  readonly positions: number[];
  readonly entries: T[];
}

/** Entries of several queues, each with those of its own queue, in pieces that do not keep the server for long. Results in the order of the entries. */
export function inPieces<T extends { readonly queue: string }, R>(
  entries: readonly T[],
  work: (queue: string, some: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const [first] = entries;
  if (first === undefined) return Promise.resolve([]);
  if (entries.length <= MOST_ENTRIES && entries.every(({ queue }) => queue === first.queue))
    return work(first.queue, entries);
  return workOff(split(entries), work);
}

async function workOff<T, R>(
  pieces: readonly Piece<T>[],
  work: (queue: string, some: readonly T[]) => Promise<readonly R[]>,
): Promise<readonly R[]> {
  const answers = await together(pieces.map(({ queue, entries: some }) => work(queue, some)));
  const results: R[] = [];
  for (const [index, { positions }] of pieces.entries()) {
    for (const [at, result] of (answers[index] ?? []).entries()) {
      const position = positions[at];
      if (position !== undefined) results[position] = result;
    }
  }
  return results;
}

function split<T extends { readonly queue: string }>(entries: readonly T[]): Piece<T>[] {
  const pieces: Piece<T>[] = [];
  const current = new Map<string, Piece<T>>();
  for (const [position, entry] of entries.entries()) {
    let piece = current.get(entry.queue);
    if (piece === undefined || piece.entries.length === MOST_ENTRIES) {
      piece = { queue: entry.queue, positions: [], entries: [] };
      current.set(entry.queue, piece);
      pieces.push(piece);
    }
    piece.positions.push(position);
    piece.entries.push(entry);
  }
  return pieces;
}
