import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

const GROUPS_ARE_PAID = "no groups in the free version: one active item per key is BullMQ Pro";

const EVERYSEC_ONLY = "measured with everysec only";

const setup =
  "`removeOnComplete: true`, as its guide for production advises and as Baton does; `maxmemory-policy noeviction`; workers with `maxRetriesPerRequest: null`.";

export const subjects: readonly Subject[] = [
  {
    name: "bullmq",
    title: "BullMQ, Redis everysec",
    class: "buffered",
    durability: "power loss, but for the last second",
    setup: `Redis \`appendonly yes\`, \`appendfsync everysec\`, as its documentation recommends. ${setup}`,
    store: "redis-everysec",
    package: "bullmq",
    without: { keyed: GROUPS_ARE_PAID },
    open,
  },
  {
    name: "bullmq-always",
    title: "BullMQ, Redis always",
    class: "synced",
    durability: "power loss",
    setup: "As above with `appendfsync always`: the same durability as SQLite FULL.",
    store: "redis-always",
    package: "bullmq",
    without: { keyed: GROUPS_ARE_PAID, backlog: EVERYSEC_ONLY, memory: EVERYSEC_ONLY },
    open,
  },
];

async function open({ location }: OpenOptions): Promise<Client> {
  const { Queue, Worker } = await import("bullmq");
  const { hostname, port } = new URL(location);
  const connection = { host: hostname, port: Number(port) };
  const queue = new Queue<Item>("bench", {
    connection,
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true },
  });
  return {
    async prepare() {
      await queue.waitUntilReady();
    },
    submit: (item) => queue.add("item", item),
    submitMany: (items) => queue.addBulk(items.map((data) => ({ name: "item", data }))),
    async work({ concurrency }, handle) {
      const worker = new Worker<Item>("bench", async (job) => handle(job.data), {
        connection: { ...connection, maxRetriesPerRequest: null },
        concurrency,
      });
      await worker.waitUntilReady();
      return () => worker.close();
    },
    close: () => queue.close(),
  };
}
