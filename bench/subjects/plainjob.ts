/**
 * The SQLite-based peer. Looked at on npm: plainjob 0.0.14 and its predecessor plainjobs, liteque 0.8, sidequest 1.16.
 * plainjob takes any connection, so it runs on the same `node:sqlite` as Baton, and claims the highest figures of them.
 * liteque (polls, one transaction per item, no keys) and sidequest need better-sqlite3, a native module: where there is
 * no binary for the Node at hand it has to be compiled, which is too much to ask of whoever runs a benchmark.
 */
import { DatabaseSync } from "node:sqlite";
import type { Connection } from "plainjob";
import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

const NO_KEYS = "has no keys, groups or order per key";
const SILENT = { error: nothing, warn: nothing, info: nothing, debug: nothing };

export const subjects: readonly Subject[] = [
  {
    name: "plainjob",
    title: "plainjob, SQLite FULL",
    class: "synced",
    durability: "power loss",
    setup:
      "On `node:sqlite`, synchronous FULL instead of its own NORMAL. A worker runs one item at a time, so as many workers as the concurrency; they poll every second, its default.",
    store: "file",
    package: "plainjob",
    without: { keyed: NO_KEYS },
    open,
  },
];

async function open({ location }: OpenOptions): Promise<Client> {
  const { defineQueue, defineWorker } = await import("plainjob");
  const database = new DatabaseSync(location);
  const queue = defineQueue({ connection: connectionOn(database), logger: SILENT });
  database.exec("PRAGMA synchronous = FULL");
  return {
    prepare: () => Promise.resolve(),
    // Its calls are synchronous: a promise so that they fit the interface.
    submit: async (item) => queue.add("item", item),
    submitMany: async (items) => queue.addMany("item", [...items]),
    async work({ concurrency }, handle) {
      const workers = Array.from({ length: concurrency }, () =>
        defineWorker("item", (job) => handle(JSON.parse(job.data) as Item), { queue, logger: SILENT }),
      );
      const running = Promise.all(workers.map((worker) => worker.start()));
      return async () => {
        await Promise.all(workers.map((worker) => worker.stop()));
        await running;
      };
    },
    async close() {
      queue.close();
    },
  };
}

/** What plainjob expects of better-sqlite3, of `node:sqlite`. */
function connectionOn(database: DatabaseSync): Connection {
  const connection = {
    driver: "better-sqlite3",
    filename: "",
    pragma: (statement: string) => database.exec(`PRAGMA ${statement}`),
    exec: (statement: string) => database.exec(statement),
    prepare: (text: string) => database.prepare(text),
    transaction: (run: (...values: unknown[]) => unknown) => {
      const within =
        (begin: string) =>
        (...values: unknown[]): unknown => {
          database.exec(begin);
          try {
            const result = run(...values);
            database.exec("COMMIT");
            return result;
          } catch (error) {
            database.exec("ROLLBACK");
            throw error;
          }
        };
      return Object.assign(within("BEGIN"), { immediate: within("BEGIN IMMEDIATE") });
    },
    close: () => database.close(),
  };
  // Its type wants the transaction of better-sqlite3, of which it calls these two.
  return connection as unknown as Connection;
}

function nothing(): void {
  // It tells every step of every job.
}
