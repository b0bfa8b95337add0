/** Questions about a queue, and dead letters brought back, page by page. */
import type * as port from "../../engine/port.ts";
import type { Queue } from "./queue.ts";
import { list, number, readDead, readKey, text, texts } from "./replies.ts";
import { together } from "./together.ts";

/** So many at a time: others want the server too. */
const PAGE = 200;
/** Dead letters have payloads. */
const DEAD_PAGE = 50;

export async function keyReports(queue: Queue, request: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
  if (request.leased === true) return await leasedKeys(queue, request);
  return await inPages(request, PAGE, async (after, limit) => {
    const args = ["keys", after, String(limit)];
    const [last, looked, ...reports] = await queue.look("keys", args, (result) => list(result));
    return { reports: reports.map(readKey), looked: number(looked), last: text(last) };
  });
}

export async function deadReports(queue: Queue, request: port.PageRequest): Promise<readonly port.DeadReport[]> {
  return await inPages(request, DEAD_PAGE, async (after, limit) => {
    const args = ["dead", after, String(limit)];
    const read = (result: unknown): port.DeadReport[] => list(result).map((one) => readDead(one, queue.levels));
    const reports = await queue.look("dead letters", args, read);
    return { reports, looked: reports.length, last: reports.at(-1)?.id ?? "" };
  });
}

interface Page<T> {
  readonly reports: readonly T[];
  /** How many were looked at, and which was the last. */
  readonly looked: number;
  readonly last: string;
}

async function inPages<T>(
  { after = "", limit }: port.PageRequest,
  most: number,
  turn: (after: string, limit: number) => Promise<Page<T>>,
): Promise<readonly T[]> {
  const found: T[] = [];
  for (let from = after; found.length < limit;) {
    const wanted = Math.min(most, limit - found.length);
    const { reports, looked, last } = await turn(from, wanted);
    found.push(...reports);
    if (looked < wanted) break;
    from = last;
  }
  return found;
}

/** All of them in small steps. Letters that die meanwhile are left for the next time. */
export async function revive({ desk }: Queue, { ids, action }: port.ReviveRequest): Promise<number> {
  const grows = action === "retry";
  if (ids !== undefined) {
    const asked = [...new Set(ids)].map((id) =>
      desk.ask("a dead letter brought back", ["revive", action, id], number, { grows }),
    );
    return (await together(asked)).reduce((sum, one) => sum + one, 0);
  }
  let revived = 0;
  for (let upTo = ""; ;) {
    const args = ["reviveAll", action, upTo, String(PAGE)];
    const [place, count] = await desk.ask("dead letters brought back", args, list, { entries: PAGE, grows });
    upTo = text(place);
    revived += number(count);
    if (number(count) < PAGE) return revived;
  }
}

/** There are never more leases than there are slots to work in; sorted here, because Lua would sort by the server's locale. */
async function leasedKeys(queue: Queue, { after, limit }: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
  const names = await queue.look("leases", ["leased"], texts);
  const from = after === undefined ? undefined : Buffer.from(after);
  const page = names
    .map((name) => ({ name, bytes: Buffer.from(name) }))
    .filter(({ bytes }) => from === undefined || Buffer.compare(bytes, from) > 0)
    .toSorted((a, b) => Buffer.compare(a.bytes, b.bytes))
    .slice(0, limit);
  const reports = await Promise.all(page.map(({ name }) => queue.look("a key", ["key", name], list)));
  return reports
    .filter((report) => report.length > 0)
    .map(readKey)
    .filter(({ running }) => running !== undefined);
}
