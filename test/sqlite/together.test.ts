/** Calls that meet in one transaction, connections that meet in one process, processes that meet in one file. */
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { Lateness } from "../kit/lateness.ts";
import { Desk } from "./desk.ts";

test("a call that the store cannot digest does not fail the others of its transaction", async (context) => {
  const baton = await new Desk(context).connect();
  const queue = baton.queue("q");
  await queue.levels();
  const refused = [
    queue.submit("k", 1, { delay: "99999999999999999d" }),
    queue.keys({ limit: Number.NaN }),
    // @ts-expect-error: what a caller without types may pass
    queue.item(undefined),
    // @ts-expect-error: what a caller without types may pass
    queue.submit("k", 1, { headers: { a: 1 } }),
  ];
  const accepted = Promise.all(Array.from({ length: 20 }, (_, index) => queue.submit("k", index)));
  for (const one of refused) await assert.rejects(one, { code: "INVALID_INPUT" });
  assert.equal((await accepted).length, 20);
  assert.equal((await queue.status()).waiting, 20);
});

test(
  "a second connection of one process leaves the first one's lock alone",
  { skip: process.platform !== "linux" },
  async (context) => {
    const desk = new Desk(context);
    const first = await desk.connect();
    await first.queue("q").submit("k", 1);
    const { ino } = statSync(desk.file);
    const locks = (): number =>
      readFileSync("/proc/locks", "utf8")
        .split("\n")
        .filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${ino} `)).length;
    const before = locks();
    assert.ok(before > 0, "SQLite holds a lock on the file");
    await desk.connect();
    assert.ok(locks() >= before, "the lock is still held");
  },
);

test("an outcome that another connection brings about is heard by one that also writes", async (context) => {
  const desk = new Desk(context);
  const submitter = (await desk.connect()).queue<number>("q");
  const elsewhere = (await desk.connect()).queue<number>("q");
  const worker = elsewhere.work(async () => undefined, { concurrency: 4 });
  for (let round = 0; round < 20; round += 1) {
    const receipt = await submitter.submit("k", round, { id: `item-${round}` });
    const outcome = receipt.outcome({ timeout: "30s" });
    // Writes of its own, before and after the other one's: they must not hide what the other one did.
    await Promise.all([submitter.submit("later", 0, { delay: "1h" }), submitter.submit("later", 0, { delay: "1h" })]);
    assert.equal((await outcome).state, "done");
  }
  await worker.stop();
});

test("a submission wakes another connection although another queue is worked off in the same transaction", async (context) => {
  const desk = new Desk(context);
  const baton = await desk.connect();
  const backlog = baton.queue<number>("backlog");
  const ours = baton.queue<number>("woken");
  await backlog.submitMany(Array.from({ length: 200 }, (_, index) => ({ key: `k${index}`, payload: index })));
  using lateness = new Lateness();
  const late: number[] = [];
  const woken = (await desk.connect()).queue<number>("woken");
  const sleeper = woken.work((item) => void late.push(Date.now() - item.submittedAt), { concurrency: 200 });
  await woken.status();
  // The settlement of the backlog's item, the claim for its next one and the submission share a transaction.
  const busy = backlog.work(async (item) => void ours.submit(`w${item.payload}`, 0), {
    concurrency: 1,
    untilEmpty: true,
  });
  await busy.stopped;
  await sleeper.stop();
  late.sort((a, b) => a - b);
  const median = late[Math.floor(late.length / 2)] ?? Infinity;
  context.diagnostic(`median ${median} ms`);
  // As if nobody had been woken.
  lateness.assertWithin(median, 150, "the median start");
});
