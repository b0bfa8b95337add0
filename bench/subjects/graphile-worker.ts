import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

/** The configuration on its own performance page. */
const TUNED = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
/** Ends a wait for keys that were busy: at the default of 2 s the keyed workloads are several times slower. */
const TUNED_POLL_MS = 100;
/** "10 or concurrentJobs + 2, whichever is larger", it says. */
const LEAST_POOL = 10;

const TUNED_ONLY = "measured tuned only";

export const subjects: readonly Subject[] = [
  {
    name: "graphile",
    title: "graphile-worker, tuned",
    class: "synced",
    durability: "power loss",
    setup:
      "PostgreSQL `synchronous_commit on`. As its performance page has it: a local queue of 500 and completion in batches; " +
      `a pool of \`concurrentJobs + 2\`. Polls every ${TUNED_POLL_MS} ms instead of 2 s, which only helps it. Keys: \`queueName\`.`,
    store: "postgres",
    package: "graphile-worker",
    open: (options) => open(options, true),
  },
  {
    name: "graphile-default",
    title: "graphile-worker, defaults",
    class: "synced",
    durability: "power loss",
    setup: "As above without the local queue and the batches, polling every 2 s.",
    store: "postgres",
    package: "graphile-worker",
    variant: true,
    without: {
      submit: "no different from graphile-worker, tuned",
      backlog: TUNED_ONLY,
      "hot-key": TUNED_ONLY,
      memory: TUNED_ONLY,
    },
    open: (options) => open(options, false),
  },
];

async function open({ location, exclusive }: OpenOptions, tuned: boolean): Promise<Client> {
  const { Logger, makeWorkerUtils, run } = await import("graphile-worker");
  const logger = new Logger(() => () => undefined);
  const utils = await makeWorkerUtils({ connectionString: location, logger });
  return {
    prepare: () => utils.migrate(),
    submit: (item) => utils.addJob("item", item, exclusive ? { queueName: item.key } : {}),
    submitMany: (items) =>
      utils.addJobs(
        items.map((payload) =>
          exclusive ? { identifier: "item", payload, queueName: payload.key } : { identifier: "item", payload },
        ),
      ),
    async work({ concurrency }, handle) {
      const runner = await run({
        preset: {
          worker: {
            connectionString: location,
            concurrentJobs: concurrency,
            maxPoolSize: Math.max(LEAST_POOL, concurrency + 2),
            logger,
            ...(tuned ? { ...TUNED, pollInterval: TUNED_POLL_MS } : {}),
          },
        },
        // Whoever runs it has handlers of signals already.
        noHandleSignals: true,
        crontab: "",
        taskList: {
          // The type is the submitter's promise.
          item: async (payload) => handle(payload as Item),
        },
      });
      return () => runner.stop();
    },
    close: async () => {
      await utils.release();
    },
  };
}
