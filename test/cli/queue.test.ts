import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import { startPostgres } from "../../servers/postgres.ts";
import { startRedisServer } from "../../servers/redis-server.ts";
import { until } from "../kit/until.ts";
import { Desk } from "./baton-command.ts";

/** Undefined: a file. */
type Start = (() => Promise<{ readonly url: string; stop(): Promise<void> }>) | undefined;

const STORES: readonly (readonly [name: string, start: Start])[] = [
  ["SQLite", undefined],
  ["PostgreSQL", () => startPostgres()],
  ["Redis", () => startRedisServer()],
  ["NATS", () => startNatsServer()],
];

for (const [name, start] of STORES) {
  describe(`baton queue delete on ${name}`, { timeout: 120_000 }, () => {
    test("deletes an empty queue, refuses one that is not, and loses what is in it by force", async (context) => {
      const server = await start?.();
      if (server !== undefined) context.after(() => server.stop());
      const desk = new Desk(context, server?.url);
      await desk.run(["submit", "orders", "o1", "ship", "--id", "order-1"]);
      await desk.run(["work", "ordres", "--until-empty", "--quiet", "--", "true"]);
      const names = async (): Promise<string[]> => {
        const reports = (await desk.json(["status"])) as readonly { readonly queue: string }[];
        return reports.map(({ queue }) => queue).toSorted();
      };
      assert.deepEqual(await names(), ["orders", "ordres"]);

      const misspelt = await desk.run(["queue", "delete", "ordres"]);
      assert.deepEqual([misspelt.code, misspelt.stdout], [0, "deleted ordres\n"]);
      assert.deepEqual(await names(), ["orders"]);
      const again = await desk.run(["queue", "delete", "ordres"]);
      assert.equal(again.code, 1);
      assert.match(again.stderr, /There is no queue "ordres" in this store\. Did you mean orders\?/);

      assert.match((await desk.run(["queue", "delete"])).stderr, /See: baton queue delete --help/);

      const full = await desk.run(["queue", "delete", "orders"]);
      assert.equal(full.code, 3);
      assert.match(
        full.stderr,
        /not empty: 1 item\(s\) wait, 0 key\(s\) are in work or held, and 0 item\(s\) are dead/,
      );
      assert.deepEqual(await desk.json(["queue", "delete", "orders", "--force"]), { queue: "orders", deleted: true });
      assert.deepEqual(await names(), []);
      // It is a new queue: nothing is known of the id.
      const anew = (await desk.json(["submit", "orders", "o1", "ship", "--id", "order-1"])) as { duplicate: boolean };
      assert.equal(anew.duplicate, false);
    });

    test("a worker that waits in the queue does not make it anew, and goes on when somebody submits", async (context) => {
      const server = await start?.();
      if (server !== undefined) context.after(() => server.stop());
      const desk = new Desk(context, server?.url);
      const worker = desk.start(["work", "orders", "--", "sh", "-c", 'echo "$BATON_KEY"']);
      let said = "";
      let ran = "";
      worker.child.stderr?.on("data", (text: string) => (said += text));
      worker.child.stdout?.on("data", (text: string) => (ran += text));
      await until(() => said.includes("waits for items"), "the worker");
      const queue = await desk.queue("orders");
      // A connection that knew the queue before it was deleted.
      await queue.submit("o1", "ship", { id: "order-1" });
      await until(() => ran === "o1\n", "the first item");
      await until(() => said.includes("orders"), "the queue");
      let code: number | null = 3;
      // The worker may not yet have said that it is done.
      while (code === 3) ({ code } = await desk.run(["queue", "delete", "orders"]));
      assert.equal(code, 0);
      await until(() => said.includes("is not in the store"), "word that the queue is gone");
      assert.deepEqual(await desk.json(["status"]), []);
      assert.equal((await queue.submit("o2", "ship", { id: "order-1" })).duplicate, false);
      await until(() => ran === "o1\no2\n", "the item that made the queue anew");
      worker.child.kill("SIGTERM");
      assert.equal((await worker.finished).code, 0);
    });
  });
}
