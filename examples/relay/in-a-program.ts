/**
 * The relay as a library: two queues, the urgent one first, to a function. One message per key at a time across both,
 * because the keys are held in a third queue of the store.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "batonq";
import { batonSource, createRelay, DEFAULT_KEYS, DEFAULT_RETRY, type SourceSettings } from "batonq/relay";

const folder = mkdtempSync(join(tmpdir(), "baton-relay-"));
const store = `sqlite:${join(folder, "work.db")}`;
const baton = await connect(store);
for (const key of ["car1", "car2"]) {
  await baton.queue("bulk").submit(key, { do: "wash" });
  await baton.queue("urgent").submit(key, { do: "repair" });
}

const from = (queue: string): SourceSettings => ({
  name: queue,
  weight: 1,
  retry: DEFAULT_RETRY,
  deadLetter: { to: "source" },
  open: () => batonSource({ name: queue, store, queue }),
});

const all = Promise.withResolvers<void>();
let left = 4;
const relay = await createRelay({
  routes: [
    {
      name: "cars",
      sources: [from("urgent"), from("bulk")],
      choice: "strict",
      concurrency: 2,
      transforms: [],
      key: undefined,
      form: { type: "raw" },
      processor: {
        type: "function",
        timeoutMs: 60_000,
        run: ({ source, key, data }) => {
          console.log(`${source}: ${key ?? ""} ${Buffer.from(data).toString()}`);
          if ((left -= 1) === 0) all.resolve();
        },
      },
    },
  ],
  keys: { ...DEFAULT_KEYS, store, queue: "keys" },
  admin: undefined,
  graceMs: 5_000,
});
await all.promise;
console.log(await relay.stop());
await baton.close();
rmSync(folder, { recursive: true });
