import { connect } from "../../src/index.ts";
import type { Item } from "../item.ts";
import type { Client } from "../subject.ts";

/** Baton as an application uses it, whatever its store. */
export async function openBaton(url: string): Promise<Client> {
  const baton = await connect(url);
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
