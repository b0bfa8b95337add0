/** The ceiling: what `node:sqlite` does at FULL when nobody asks for leases, keys, levels, retries or wake-ups. */
import { DatabaseSync } from "node:sqlite";
import { setImmediate as turn } from "node:timers/promises";
import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

const CLAIM = 100;
const ONLY_LOOPS = "plain loops: no keys, no wake-up";

export const subjects: readonly Subject[] = [
  {
    name: "raw",
    title: "raw node:sqlite FULL",
    class: "synced",
    durability: "power loss",
    setup: `The ceiling, not a queue: one table; submits of one turn of the event loop share a transaction; claim and delete by ${CLAIM}.`,
    store: "file",
    ceiling: true,
    against: "sqlite",
    without: { latency: ONLY_LOOPS, keyed: ONLY_LOOPS, memory: ONLY_LOOPS },
    open,
  },
];

async function open({ location }: OpenOptions): Promise<Client> {
  const database = new DatabaseSync(location, { timeout: 5_000 });
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, taken INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS free ON item (id) WHERE taken = 0;
  `);
  const insert = database.prepare("INSERT INTO item (taken, body) VALUES (0, ?)");
  const claim = database.prepare(
    "UPDATE item SET taken = 1 WHERE id IN (SELECT id FROM item WHERE taken = 0 ORDER BY id LIMIT ?) RETURNING id, body",
  );
  const remove = database.prepare("DELETE FROM item WHERE id = ?");

  function transaction<T>(run: () => T): T {
    database.exec("BEGIN IMMEDIATE");
    const result = run();
    database.exec("COMMIT");
    return result;
  }

  function submitMany(items: readonly Item[]): void {
    transaction(() => {
      for (const item of items) insert.run(JSON.stringify(item));
    });
  }

  let pending: Item[] = [];
  let flushed: Promise<void> | undefined;
  async function flush(): Promise<void> {
    await turn();
    const items = pending;
    pending = [];
    flushed = undefined;
    submitMany(items);
  }

  return {
    prepare: () => Promise.resolve(),
    submit(item) {
      pending.push(item);
      flushed ??= flush();
      return flushed;
    },
    submitMany: async (items) => submitMany(items),
    async work(_, handle) {
      const stop = new AbortController();
      const loop = async (): Promise<void> => {
        while (!stop.signal.aborted) {
          const rows = transaction(() => claim.all(CLAIM));
          for (const row of rows) await handle(JSON.parse(String(row["body"])) as Item);
          transaction(() => {
            for (const { id } of rows) remove.run(Number(id));
          });
          await turn();
        }
      };
      const running = loop();
      return async () => {
        stop.abort();
        await running;
      };
    },
    close: async () => database.close(),
  };
}
