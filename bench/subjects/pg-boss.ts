import type { Item } from "../item.ts";
import { runEach } from "../child/run-each.ts";
import type { Client, Handle, OpenOptions, Subject, WorkOptions } from "../subject.ts";

const QUEUE = "bench";
/** Its documentation leaves the size open: as many as graphile-worker's local queue holds, so that both fetch alike. */
const BATCH = 500;
/** With keys a fetch returns at most one item of each. */
const KEYED_BATCH = 100;

const AS_BATCHES = "no different from pg-boss in batches";
const BATCHES_ONLY = "measured in batches only";

export const subjects: readonly Subject[] = [
  {
    name: "pg-boss",
    title: "pg-boss, batches",
    class: "synced",
    durability: "power loss",
    setup:
      `PostgreSQL \`synchronous_commit on\`. \`work\` with batches of ${BATCH} (${KEYED_BATCH} with keys), \`burstWhenBatchFull\` and \`notify\`. ` +
      "A batch is completed as one: its items do not end one by one. Keys: policy `key_strict_fifo`.",
    store: "postgres",
    package: "pg-boss",
    open: (options) => open(options, true),
  },
  {
    name: "pg-boss-one",
    title: "pg-boss, one by one",
    class: "synced",
    durability: "power loss",
    setup:
      "As above, but `fetch` and `complete` one item at a time in as many loops as the concurrency: " +
      "`work` with its default batch size of 1 takes one item per poll.",
    store: "postgres",
    package: "pg-boss",
    variant: true,
    without: {
      submit: AS_BATCHES,
      latency: AS_BATCHES,
      backlog: BATCHES_ONLY,
      "hot-key": BATCHES_ONLY,
      memory: BATCHES_ONLY,
    },
    open: (options) => open(options, false),
  },
];

async function open({ location, exclusive }: OpenOptions, batches: boolean): Promise<Client> {
  const { PgBoss } = await import("pg-boss");
  const boss = new PgBoss({ connectionString: location, useListenNotify: true });
  boss.on("error", (error: Error) => console.error(error.message));
  await boss.start();

  /** The documented way to process one at a time as fast as possible. */
  function loops({ concurrency }: WorkOptions, handle: Handle): () => Promise<void> {
    const stop = new AbortController();
    const loop = async (): Promise<void> => {
      while (!stop.signal.aborted) {
        const [job] = await boss.fetch<Item>(QUEUE);
        if (job === undefined) {
          // Nothing for now: all that waits is behind what other loops hold.
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        await handle(job.data);
        await boss.complete(QUEUE, job.id);
      }
    };
    const running = Promise.all(Array.from({ length: concurrency }, loop));
    return async () => {
      stop.abort();
      await running;
    };
  }

  return {
    prepare: () => boss.createQueue(QUEUE, { policy: exclusive ? "key_strict_fifo" : "standard", notify: true }),
    submit: (item) => boss.send(QUEUE, item, exclusive ? { singletonKey: item.key } : {}),
    submitMany: (items) =>
      boss.insert(
        QUEUE,
        items.map((item) => (exclusive ? { data: item, singletonKey: item.key } : { data: item })),
      ),
    async work(options, handle) {
      if (!batches) return loops(options, handle);
      await boss.work<Item>(
        QUEUE,
        {
          batchSize: exclusive ? KEYED_BATCH : BATCH,
          burstWhenBatchFull: true,
          // The shortest it allows: ends the wait after a batch that was not full because keys were busy.
          pollingIntervalSeconds: 0.5,
          notifyPollingIntervalSeconds: 0.5,
        },
        (jobs) => runEach(jobs, options.concurrency, (job) => handle(job.data)),
      );
      return () => boss.offWork(QUEUE);
    },
    close: () => boss.stop({ graceful: false }),
  };
}
