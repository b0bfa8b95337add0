/** Somebody removes a lock from its store by the store's own means: the holder hears of it, where nothing else does. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect as connectNats } from "@nats-io/transport-node";
import { createClient } from "@redis/client";
import { Client } from "pg";
import { startNatsServer } from "../../servers/nats-server.ts";
import { startPostgres } from "../../servers/postgres.ts";
import { startRedisServer } from "../../servers/redis-server.ts";
import { tokenOf } from "../../src/engines/nats/key-token.ts";
import { locksTag } from "../../src/engines/redis/names.ts";
import { type Baton, type BatonEvent, connect, type HeldLock } from "../../src/index.ts";
import { started } from "../started.ts";

interface Store {
  readonly name: string;
  url(): string;
  /** Removes a cell without a word to anybody. */
  remove(cell: string): Promise<unknown>;
  /** A change of the cell is heard of. If not, the next sign of life looks. */
  readonly isWatched: boolean;
}

/** A sign of life each second. */
const LEASE = "3s";
/** No sign of life is due while a test runs. */
const LONG = "10m";
/** On an idle machine: a look costs a millisecond or two. */
const SLACK_MS = 4_000;
/** After this a hold is watched. */
const WATCHED_MS = 500;

const folder = mkdtempSync(join(tmpdir(), "baton-removed-"));
const file = join(folder, "work.db");
after(() => rmSync(folder, { recursive: true, force: true }));

const nats = started(() => startNatsServer());
const postgres = started(() => startPostgres());
const redis = started(() => startRedisServer());

const stores: readonly Store[] = [
  {
    name: "SQLite",
    url: () => `sqlite:${file}`,
    remove: (cell) => {
      using database = new DatabaseSync(file, { timeout: 5_000 });
      return Promise.resolve(database.prepare("DELETE FROM cell WHERE name = ?").run(cell));
    },
    isWatched: true,
  },
  {
    name: "NATS",
    url: () => nats().url,
    remove: async (cell) => {
      const [kind = "", rest = ""] = cell.split("/");
      const connection = await connectNats({ servers: nats().url });
      const filter = `baton.c.cell.${kind}.${tokenOf(rest)}`;
      const reply = await connection.request("$JS.API.STREAM.PURGE.baton", JSON.stringify({ filter }));
      assert.match(reply.string(), /"purged":1/);
      await connection.close();
    },
    isWatched: true,
  },
  {
    name: "PostgreSQL",
    url: () => postgres().url,
    remove: async (cell) => {
      const client = new Client(postgres().url);
      await client.connect();
      const { rowCount } = await client.query("DELETE FROM baton.cell WHERE name = $1", [cell]);
      assert.equal(rowCount, 1);
      await client.end();
    },
    isWatched: false,
  },
  {
    name: "Redis",
    url: () => redis().url,
    remove: async (cell) => {
      const client = createClient({ url: redis().url });
      await client.connect();
      assert.equal(await client.hDel(`${locksTag("baton")}:cells`, cell), 1);
      client.destroy();
    },
    isWatched: true,
  },
];

describe("a lock whose cell is removed", { concurrency: 2, timeout: 60_000 }, () => {
  for (const store of stores) {
    test(`${store.name}: its holder hears of it with the next sign of life, and its neighbour does not`, async () => {
      const { baton, events } = await connected(store);
      const [lock, neighbour] = [
        await baton.lock("renewed", { lease: LEASE }),
        await baton.lock("kept", { lease: LEASE }),
      ];
      await store.remove("lock/renewed");
      await heard(lock);
      assert.throws(() => lock.check(), { code: "LOCK_LOST" });
      assert.equal(await lock.release(), false, "it was let go of, or lost, before");
      neighbour.check();
      assert.equal(await neighbour.release(), true, "the lock beside it is still held");
      assert.deepEqual(
        events.filter(({ type }) => type.endsWith("-lost")).map(({ type }) => type),
        ["lock-lost"],
      );
      await baton.close();
    });

    test(`${store.name}: withLock does not resolve when only the release finds out`, async () => {
      const { baton } = await connected(store);
      const finished = baton.withLock("late", () => store.remove("lock/late"), { lease: LONG });
      await assert.rejects(finished, { code: "LOCK_LOST" });
      await baton.close();
    });

    test(`${store.name}: when the cell of its session is removed, the session is lost with the next sign of life`, async () => {
      const { baton } = await connected(store);
      await using session = await baton.session({ lease: LEASE });
      const lock = await session.lock("of a session");
      await store.remove(`session/${session.id}`);
      await heard(lock);
      assert.ok(session.signal.aborted);
      await baton.close();
    });

    if (!store.isWatched) continue;
    test(`${store.name}: its holder hears at once of the next one who has it`, async () => {
      const [first, second] = [await connected(store), await connected(store)];
      const lock = await first.baton.lock("taken", { lease: LONG });
      await sleep(WATCHED_MS);
      await store.remove("lock/taken");
      const next = await second.baton.lock("taken", { lease: LONG, wait: "0s" });
      await heard(lock);
      next.check();
      assert.ok(next.fence > lock.fence);
      await Promise.all([first.baton.close(), second.baton.close()]);
    });
  }
});

async function connected(store: Store): Promise<{ readonly baton: Baton; readonly events: readonly BatonEvent[] }> {
  const events: BatonEvent[] = [];
  return { baton: await connect(store.url(), { onEvent: (event) => events.push(event) }), events };
}

async function heard({ signal }: HeldLock): Promise<void> {
  const end = performance.now() + SLACK_MS;
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve());
  if (signal.aborted) resolve();
  await Promise.race([promise, sleep(end - performance.now(), undefined, { ref: false })]);
  assert.ok(signal.aborted, `nothing was heard for ${SLACK_MS} ms`);
}
