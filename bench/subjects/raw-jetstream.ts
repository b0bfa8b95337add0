/** The ceiling: what JetStream does when nobody asks for leases, keys, levels or retries. */
import { JetStream } from "../child/jetstream.ts";
import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

const STREAM = "BENCH";
const SUBJECT = "bench.item";

export const subjects: readonly Subject[] = [
  {
    name: "jetstream",
    title: "raw JetStream",
    class: "buffered",
    durability: "crash of processes; power loss, but for the last two minutes",
    setup:
      "The ceiling, not a queue: one work-queue stream with one subject, in files; every publish is acknowledged; a pull consumer " +
      "with a buffer of 256; an item is over when the server has confirmed its acknowledgement. Replies over one subscription and a map.",
    store: "nats",
    package: "@nats-io/transport-node",
    ceiling: true,
    against: "baton-nats",
    without: { keyed: "has no keys" },
    open,
  },
];

async function open({ location }: OpenOptions): Promise<Client> {
  const js = await JetStream.open(location);
  const submit = (item: Item): Promise<boolean> => js.publish(SUBJECT, JSON.stringify(item));
  return {
    prepare: () => js.createStream(STREAM, SUBJECT),
    submit,
    submitMany: (items) => Promise.all(items.map(submit)),
    async work({ concurrency }, handle) {
      return js.consume(STREAM, concurrency, async (message) => {
        await handle(message.json<Item>());
        await js.request(message.reply ?? "", "+ACK");
      });
    },
    close: () => js.connection.close(),
  };
}
