/**
 * One at a time per key, as it is usually advised for JetStream: the key is the subject, a subject holds one message, and
 * a second one is refused until the first was acknowledged.
 */
import { JetStream } from "../child/jetstream.ts";
import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

const STREAM = "BENCH";
const ITEMS = "bench.item.";
/** Said by workers when a key is free again. */
const FREE = "bench.free.";

const WAITS_ELSEWHERE = "no line at the server: what waits for a busy key waits in its producer";

export const subjects: readonly Subject[] = [
  {
    name: "jetstream-recipe",
    title: "JetStream, a message per subject",
    class: "buffered",
    durability: "crash of processes; power loss, but for the last two minutes; not what waits for a busy key",
    setup:
      "As raw JetStream, but a subject per key, `max_msgs_per_subject: 1` and `discard_new_per_subject`: a submission is refused while " +
      "its key is busy. Its producer keeps what was refused in memory, and submits it again when the worker says that the key is free.",
    store: "nats",
    package: "@nats-io/transport-node",
    against: "baton-nats",
    without: { backlog: WAITS_ELSEWHERE, "hot-key": WAITS_ELSEWHERE },
    open,
  },
];

async function open({ location, exclusive }: OpenOptions): Promise<Client> {
  const js = await JetStream.open(location);
  const lines = new Lines((item) => js.publish(ITEMS + item.key, JSON.stringify(item)));
  if (exclusive) {
    js.connection.subscribe(`${FREE}*`, {
      callback: (_, { subject }) => lines.free(subject.slice(FREE.length)),
    });
  }
  return {
    prepare: () => js.createStream(STREAM, `${ITEMS}*`, { max_msgs_per_subject: 1, discard_new_per_subject: true }),
    submit: (item) => lines.add(item),
    submitMany: (items) => Promise.all(items.map((item) => lines.add(item))),
    async work({ concurrency }, handle) {
      return js.consume(STREAM, concurrency, async (message) => {
        const item = message.json<Item>();
        await handle(item);
        await js.request(message.reply ?? "", "+ACK");
        if (exclusive) js.connection.publish(FREE + item.key);
      });
    },
    close: () => js.connection.close(),
  };
}

interface Line {
  readonly items: Item[];
  offering: boolean;
}

/** What waits for its key, in the order of its submission. */
class Lines {
  readonly #publish: (item: Item) => Promise<boolean>;
  readonly #lines = new Map<string, Line>();
  /** How often each key became free: once while an item was offered is reason to try again. */
  readonly #freed = new Map<string, number>();

  constructor(publish: (item: Item) => Promise<boolean>) {
    this.#publish = publish;
  }

  /** Resolves when the item is stored, or waits here. */
  async add(item: Item): Promise<void> {
    const line = this.#lines.get(item.key);
    if (line !== undefined) {
      line.items.push(item);
      return;
    }
    const begun = { items: [item], offering: false };
    this.#lines.set(item.key, begun);
    await this.#offer(item.key, begun);
  }

  free(key: string): void {
    this.#freed.set(key, (this.#freed.get(key) ?? 0) + 1);
    const line = this.#lines.get(key);
    if (line?.offering === false) void this.#offer(key, line);
  }

  async #offer(key: string, line: Line): Promise<void> {
    line.offering = true;
    for (let [first] = line.items; first !== undefined; [first] = line.items) {
      const freed = this.#freed.get(key);
      if (await this.#publish(first)) line.items.shift();
      if (this.#freed.get(key) === freed) break;
    }
    line.offering = false;
    if (line.items.length === 0) this.#lines.delete(key);
  }
}
