/** Questions about a queue, and dead letters brought back, page by page. */
import type { Clock } from "../../domain/clock.ts";
import type * as port from "../../engine/port.ts";
import type { Queue } from "./queue.ts";
import { list, number, readDead, readItem, readKey, readQueue, text, texts } from "./replies.ts";
import { together } from "./together.ts";

/** So many at a time: others want the server too. */
const PAGE = 200;
/** Dead letters have payloads. */
const DEAD_PAGE = 50;

export class Inspection {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  find(queue: Queue, id: string): Promise<port.ItemReport | undefined> {
    return queue.look("an item", ["find", id], (result) => readItem(result, id, queue.levels, this.#clock.wall()));
  }

  report(queue: Queue): Promise<port.QueueReport> {
    return queue.look("a queue", ["report"], (result) => readQueue(result, queue.name));
  }

  async keys(queue: Queue, request: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    if (request.leased === true) return await this.#leased(queue, request);
    const found: port.KeyReport[] = [];
    for (let after = request.after ?? ""; found.length < request.limit;) {
      const limit = Math.min(PAGE, request.limit - found.length);
      const page = await queue.look("keys", ["keys", after, String(limit)], (result) => list(result));
      const [last, looked, ...reports] = page;
      found.push(...reports.map(readKey));
      if (number(looked) < limit) break;
      after = text(last);
    }
    return found;
  }

  async dead(queue: Queue, request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    const found: port.DeadReport[] = [];
    for (let after = request.after ?? ""; found.length < request.limit;) {
      const limit = Math.min(DEAD_PAGE, request.limit - found.length);
      const args = ["dead", after, String(limit)];
      const page = await queue.look("dead letters", args, (result) =>
        list(result).map((one) => readDead(one, queue.levels)),
      );
      found.push(...page);
      const last = page.at(-1);
      if (last === undefined || page.length < limit) break;
      after = last.id;
    }
    return found;
  }

  /** All of them in small steps. Letters that die meanwhile are left for the next time. */
  async revive(queue: Queue, { ids, action }: port.ReviveRequest): Promise<number> {
    if (ids !== undefined) {
      const asked = [...new Set(ids)].map((id) =>
        queue.desk.ask("a dead letter brought back", ["revive", action, id], number, { grows: action === "retry" }),
      );
      return (await together(asked)).reduce((sum, one) => sum + one, 0);
    }
    let revived = 0;
    for (let upTo = ""; ;) {
      const args = ["reviveAll", action, upTo, String(PAGE)];
      const step = await queue.desk.ask("dead letters brought back", args, (result) => list(result), {
        entries: PAGE,
        grows: action === "retry",
      });
      upTo = text(step[0]);
      revived += number(step[1]);
      if (number(step[1]) < PAGE) return revived;
    }
  }

  /** There are never more leases than there are slots to work in; sorted here, because Lua would sort by the server's locale. */
  async #leased(queue: Queue, { after, limit }: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    const names = await queue.look("leases", ["leased"], texts);
    const from = after === undefined ? undefined : Buffer.from(after);
    const page = names
      .map((name) => ({ name, bytes: Buffer.from(name) }))
      .filter(({ bytes }) => from === undefined || Buffer.compare(bytes, from) > 0)
      .toSorted((a, b) => Buffer.compare(a.bytes, b.bytes))
      .slice(0, limit);
    const reports = await Promise.all(
      page.map(({ name }) => queue.look("a key", ["key", name], (result) => list(result))),
    );
    return reports
      .filter((report) => report.length > 0)
      .map(readKey)
      .filter(({ running }) => running !== undefined);
  }
}
