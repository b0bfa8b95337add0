/** Somebody else writes into a store by hand: damage to one item or lock stays with it, is named, and can be repaired. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { startPostgres } from "../servers/postgres.ts";
import type { Baton } from "../src/index.ts";
import { PostgresDesk } from "./postgres/desk.ts";
import { RedisDesk } from "./redis/desk.ts";
import { until } from "./kit/until.ts";
import { refusal } from "./server-desk.ts";
import { Desk } from "./sqlite/desk.ts";

interface Stage {
  readonly baton: Baton;
  /** Writes nonsense over the headers of every item, the failure of every dead letter, the record of the lock `weekly`. */
  readonly damage: Readonly<Record<"headers" | "failures" | "lock", (() => Promise<void>) | undefined>>;
}

const STORES: Readonly<Record<string, (context: TestContext) => Promise<Stage>>> = {
  SQLite: async (context) => {
    const desk = new Desk(context);
    const change = async (sql: string): Promise<void> => {
      const database = new DatabaseSync(desk.file);
      database.exec(sql);
      database.close();
    };
    return { baton: await desk.connect(), damage: sqlDamage("", change) };
  },
  PostgreSQL: async (context) => {
    const server = await startPostgres();
    const desk = new PostgresDesk(context, server.url);
    context.after(() => server.stop());
    return { baton: await desk.connect(), damage: sqlDamage("baton.", async (sql) => void (await server.query(sql))) };
  },
  Redis: async (context) => {
    const desk = await RedisDesk.withServer(context);
    const lock = async (): Promise<void> => {
      await desk.command("HSET", "{baton:.locks}:cells", "lock/weekly", "x");
    };
    return { baton: await desk.connect(), damage: { headers: undefined, failures: undefined, lock } };
  },
};

function sqlDamage(schema: string, change: (sql: string) => Promise<void>): Stage["damage"] {
  return {
    headers: () => change(`UPDATE ${schema}item SET headers = '{"a":'`),
    failures: () => change(`UPDATE ${schema}dead SET failure = 'x'`),
    lock: () => change(`UPDATE ${schema}cell SET value = 'x' WHERE name = 'lock/weekly'`),
  };
}

for (const [name, open] of Object.entries(STORES)) {
  describe(`${name}, damaged by hand`, { timeout: 60_000 }, () => {
    test("headers: others go on, and who asks for those is told", async (context) => {
      const { baton, damage } = await open(context);
      if (damage.headers === undefined) return context.skip("They are packed together with the rest of the item.");
      const cars = baton.queue<string>("cars", { retry: { attempts: 1 } });
      await cars.submit("asks", "1", { headers: { a: "b" } });
      await cars.submit("asks not", "2", { headers: { a: "b" } });
      await damage.headers();
      await cars.submit("good", "3", { headers: { a: "b" } });
      const ran: string[] = [];
      const worker = cars.work((item) => {
        if (item.key !== "asks not") assert.deepEqual(item.headers, { a: "b" });
        ran.push(item.key);
      });
      await until(() => ran.length === 2, "the others");
      const [letter] = await until(async () => {
        const letters = await cars.dead();
        return letters.length === 1 ? letters : undefined;
      }, "a dead letter");
      await worker.stop();
      assert.equal(letter?.failure.code, "STORE_CORRUPT");
      assert.match(letter?.failure.message ?? "", /key "asks" of queue cars/);
      if (damage.failures === undefined) return;
      await damage.failures();
      assert.match((await cars.dead())[0]?.failure.message ?? "", /cannot be read.*"x"/);
    });

    test("a lock: others go on, it is named, and free after the repair", async (context) => {
      const { baton, damage } = await open(context);
      const [nightly, weekly] = [await baton.lock("nightly"), await baton.lock("weekly")];
      await damage.lock?.();
      assert.deepEqual(
        (await baton.locks()).map((report) => [report.name, report.damage !== undefined]),
        [
          ["nightly", false],
          ["weekly", true],
        ],
      );
      const { code, message } = await refusal(baton.lock("weekly", { wait: 0 }));
      assert.equal(code, "STORE_CORRUPT", message);
      assert.match(message, /lock weekly is damaged.*baton doctor --repair/);
      const errors = async (): Promise<readonly string[]> =>
        (await baton.check()).filter(({ severity }) => severity === "error").map(({ subject }) => subject);
      assert.deepEqual(await errors(), ["lock weekly"]);
      for (const repair of await baton.repairs()) await repair.run();
      assert.deepEqual(await errors(), []);
      const again = await baton.lock("weekly", { wait: 0 });
      assert.ok(again.fence > weekly.fence);
      await Promise.all([nightly.release(), again.release()]);
    });
  });
}

test(
  "Redis: a key whose record was written over is named, and the others go on",
  { timeout: 60_000 },
  async (context) => {
    const desk = await RedisDesk.withServer(context);
    const baton = await desk.connect();
    const cars = baton.queue<string>("cars", { lease: "1s" });
    await cars.submit("bad", "1");
    await cars.submit("good", "2");
    await cars.submit("delayed", "3", { delay: "500ms" });
    for (const key of ["bad", "delayed"]) await desk.command("HSET", "{baton:cars}:keys", key, "x");
    const keys = await cars.keys();
    assert.deepEqual(
      keys.map(({ key, state, damage }) => [key, state, damage !== undefined]),
      [
        ["bad", "blocked", true],
        ["delayed", "blocked", true],
        ["good", "ready", false],
      ],
    );
    const all = await Promise.allSettled([cars.submit("bad", "4"), cars.submit("good", "5"), cars.submit("more", "6")]);
    assert.deepEqual(
      all.map(({ status }) => status),
      ["rejected", "fulfilled", "fulfilled"],
    );
    const { code, message } = await refusal(cars.submit("bad", "4"));
    assert.equal(code, "STORE_CORRUPT");
    assert.match(message, /record of key "bad" is damaged/);
    const ran: string[] = [];
    const worker = cars.work(({ key, payload }) => void ran.push(`${key} ${payload}`));
    await until(() => ran.length === 3, "the others");
    // The delayed item has come due meanwhile.
    await cars.submit("last", "7", { delay: "1s" });
    await until(() => ran.length === 4, "what came due");
    await worker.stop();
    // Keys take turns: the second item of a key goes behind what is ready by then.
    assert.deepEqual(ran, ["good 2", "more 6", "good 5", "last 7"]);
    const errors = (await baton.check()).filter(({ severity }) => severity === "error");
    assert.equal(errors.length, 2, JSON.stringify(errors));
  },
);
