/** The ceiling: what PostgreSQL does for one client when nobody asks for leases, keys, levels, retries or wake-ups. */
import { setTimeout as wait } from "node:timers/promises";
import type { Item } from "../item.ts";
import type { Client, OpenOptions, Subject } from "../subject.ts";

const CLAIM = 100;
const IDLE_MS = 5;
const ONLY_LOOPS = "plain loops: no keys, no wake-up";

export const subjects: readonly Subject[] = [
  {
    name: "raw-postgres",
    title: "raw PostgreSQL",
    class: "synced",
    durability: "power loss",
    setup:
      "The ceiling, not a queue: one table; one statement at a time, with all that was submitted while the one before was under way; " +
      `claim and delete by ${CLAIM}.`,
    store: "postgres",
    package: "pg",
    ceiling: true,
    against: "baton-postgres",
    without: { latency: ONLY_LOOPS, keyed: ONLY_LOOPS, memory: ONLY_LOOPS },
    open,
  },
];

async function open({ location }: OpenOptions): Promise<Client> {
  const { Client: Connection } = await import("pg");
  const connection = new Connection({ connectionString: location });
  await connection.connect();

  async function submitMany(items: readonly Item[]): Promise<void> {
    await connection.query({
      name: "insert",
      text: "INSERT INTO item (body) SELECT unnest($1::text[])",
      values: [items.map((item) => JSON.stringify(item))],
    });
  }

  let pending: Item[] = [];
  /** The statement that is under way, and the one after it, which takes all that comes meanwhile. */
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  async function flush(): Promise<void> {
    await running.catch(() => undefined);
    const items = pending;
    pending = [];
    next = undefined;
    running = submitMany(items);
    await running;
  }

  async function claim(): Promise<readonly { readonly id: string; readonly body: string }[]> {
    const { rows } = await connection.query<{ readonly id: string; readonly body: string }>({
      name: "claim",
      text: `UPDATE item SET taken = true WHERE id = ANY (ARRAY(
        SELECT id FROM item WHERE NOT taken ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
      )) RETURNING id, body`,
      values: [CLAIM],
    });
    return rows;
  }

  return {
    async prepare() {
      await connection.query(`
        CREATE TABLE item (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, taken boolean NOT NULL DEFAULT false, body text NOT NULL);
        CREATE INDEX free ON item (id) WHERE NOT taken;
      `);
    },
    submit(item) {
      pending.push(item);
      next ??= flush();
      return next;
    },
    submitMany,
    async work(_, handle) {
      const stop = new AbortController();
      const loop = async (): Promise<void> => {
        while (!stop.signal.aborted) {
          const rows = await claim();
          for (const { body } of rows) await handle(JSON.parse(body) as Item);
          if (rows.length === 0) await wait(IDLE_MS);
          else
            await connection.query({
              name: "delete",
              text: "DELETE FROM item WHERE id = ANY ($1::bigint[])",
              values: [rows.map(({ id }) => id)],
            });
        }
      };
      const working = loop();
      return async () => {
        stop.abort();
        await working;
      };
    },
    close: () => connection.end(),
  };
}
