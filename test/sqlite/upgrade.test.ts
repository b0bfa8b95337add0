import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import { connect } from "../../src/index.ts";
import { SCHEMA_VERSION } from "../../src/engines/sqlite/schema.ts";
import { Desk } from "./desk.ts";

test("a file of the version before the history of attempts opens, and keeps its items", async (context) => {
  const desk = new Desk(context);
  const before = await connect(`sqlite:${desk.file}`);
  const queue = before.queue<string>("cars");
  await queue.submit("waits", "payload of waits", { id: "waits" });
  await (await queue.take())[0]?.retry(new Error("no luck"), { after: "1h" });
  await queue.submit("dead", "payload of dead", { id: "dead" });
  await (await queue.take())[0]?.dead(new Error("given up"));
  await queue.submit("done", "", { id: "done" });
  await (await queue.take())[0]?.done("painted");
  await before.close();
  makeOld(desk.file, 2);

  const after = await connect(`sqlite:${desk.file}`);
  context.after(() => after.close());
  const cars = after.queue<string>("cars");
  const waits = await cars.item("waits");
  assert.deepEqual(
    [waits?.state, waits?.attempt, waits?.failure, waits?.attempts],
    ["waiting", 1, undefined, undefined],
  );
  assert.equal((await cars.item("done"))?.outcome?.result?.body, '"painted"');
  const [letter] = await cars.dead();
  assert.deepEqual([letter?.id, letter?.failure.message, letter?.attempts], ["dead", "given up", undefined]);
  assert.equal(await cars.retryDead(["dead"]), 1);
  const [again] = await cars.take();
  assert.deepEqual([again?.item.key, again?.item.payload], ["dead", "payload of dead"]);
  await again?.retry(new Error("once more"), { after: "1h" });
  assert.equal((await cars.item("dead"))?.failure?.message, "once more");
  const db = new DatabaseSync(desk.file);
  assert.equal(db.prepare("PRAGMA user_version").get()?.["user_version"], SCHEMA_VERSION);
  db.close();
});

test("a lease of the version before runs is settled, and what waits behind its item can be a run", async (context) => {
  const desk = new Desk(context);
  const before = await sqliteEngine({ file: desk.file });
  await before.declare({ queue: "cars" });
  const terms = { delayMs: 0, mode: "fifo", keyLimit: 9, queueLimit: 9, keepMs: 0, level: "normal" } as const;
  const submission = { queue: "cars", key: "car1", payload: { type: "text/plain", body: "" }, ...terms };
  await before.submit(["a", "b", "c"].map((id) => Object.assign({}, submission, { id })));
  const request = { queue: "cars", worker: "worker", max: 1, leaseMs: 60_000, patienceMs: 60_000 };
  const [old] = await before.claim({ ...request, signal: AbortSignal.timeout(20_000) });
  await before.close();
  makeOld(desk.file, 3);

  const after = await sqliteEngine({ file: desk.file });
  context.after(() => after.close());
  assert.ok(old);
  assert.equal(await after.cancel({ queue: "cars", id: "c" }), "cancelled", "No lease of that version covers it");
  await after.submit([{ ...submission, id: "d" }]);
  assert.deepEqual(await after.settle([{ lease: old.lease, ending: { type: "done" } }]), ["settled"]);
  const [grant] = await after.claim({ ...request, items: 5, signal: AbortSignal.timeout(20_000) });
  assert.deepEqual(
    [grant?.item, ...(grant?.behind ?? [])].map((item) => [item?.id, item?.attempt]),
    [
      ["b", 1],
      ["d", 1],
    ],
  );
});

/** The file as that version of the schema left it. */
function makeOld(file: string, version: 2 | 3): void {
  const db = new DatabaseSync(file);
  for (const column of ["covered", "marked", "alone"]) db.exec(`ALTER TABLE key DROP COLUMN ${column}`);
  db.exec("ALTER TABLE item DROP COLUMN losses");
  if (version === 2) {
    for (const table of ["item", "receipt", "dead"]) db.exec(`ALTER TABLE ${table} DROP COLUMN tried`);
    db.exec("ALTER TABLE receipt DROP COLUMN result_missing");
  }
  db.exec(`PRAGMA user_version = ${version}`);
  db.close();
}
