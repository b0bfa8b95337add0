import type { KeyReport, Queue } from "../../index.ts";

const PAGE = 500;
/** Running keys can only be found among all keys; in a queue of a million that must not take for ever. */
const MOST_PAGES = 20;

/** The keys in work, as many as can be found with reasonable effort. */
export async function findRunning(queue: Queue<unknown>, expected: number): Promise<readonly KeyReport[]> {
  const found: KeyReport[] = [];
  let after: string | undefined;
  for (let page = 0; page < MOST_PAGES && found.length < expected; page += 1) {
    const keys = await queue.keys(after === undefined ? { limit: PAGE } : { limit: PAGE, after });
    found.push(...keys.filter((key) => key.running !== undefined));
    after = keys.at(-1)?.key;
    if (keys.length < PAGE) break;
  }
  return found;
}
