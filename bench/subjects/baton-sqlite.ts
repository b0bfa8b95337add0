import { connect } from "../../src/index.ts";
import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

const FULL_ONLY = "measured with FULL only";

export const subjects: readonly Subject[] = [
  {
    name: "sqlite",
    title: "Baton, SQLite FULL",
    durability: "power loss",
    setup:
      "Defaults: synchronous FULL, leases of 30 s. Every item is exclusive; where a workload has no keys, each item has its own.",
    store: "file",
    open: (options) => open(options, "full"),
  },
  {
    name: "sqlite-normal",
    title: "Baton, SQLite NORMAL",
    durability: "crash of processes",
    setup: "As above with synchronous NORMAL: no fsync per transaction.",
    store: "file",
    variant: true,
    without: { backlog: FULL_ONLY, "hot-key": FULL_ONLY, memory: FULL_ONLY },
    open: (options) => open(options, "normal"),
  },
];

async function open({ location }: OpenOptions, synchronous: "full" | "normal"): Promise<Client> {
  const baton = await connect(`sqlite:${location}?synchronous=${synchronous}`);
  const queue = baton.queue<Item>("bench");
  return {
    async prepare() {
      await queue.levels();
    },
    submit: (item) => queue.submit(item.key, item),
    submitMany: (items) => queue.submitMany(items.map((item) => ({ key: item.key, payload: item }))),
    async work({ concurrency }, handle) {
      const worker = queue.work((item) => handle(item.payload), { concurrency });
      return async () => {
        await worker.stop();
      };
    },
    close: () => baton.close(),
  };
}
