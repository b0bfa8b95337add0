/**
 * Several processes on one file: each opens the same SQLite file, and no two of them ever work on one key at a time. No
 * server is involved, and a process that waits for work is woken by the one that submits it.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "batonq";

const [role, store = ""] = process.argv.slice(2);
if (role === "worker") await work(store);
else await main();

async function work(url: string): Promise<void> {
  await using baton = await connect(url);
  const worker = baton.queue<string>("cars").work(
    async (item) => {
      console.log(`process ${process.pid}: ${item.key}, ${item.payload}`);
      await wait(50);
    },
    { untilEmpty: true },
  );
  await worker.stopped;
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "baton-example-"));
  try {
    const url = `sqlite:${join(folder, "work.db")}`;
    await using baton = await connect(url);
    const jobs = ["wash", "wax", "polish"].flatMap((job) =>
      ["car1", "car2", "car3"].map((key) => ({ key, payload: job })),
    );
    await baton.queue<string>("cars").submitMany(jobs);
    const workers = [1, 2, 3].map(() => fork(import.meta.filename, ["worker", url]));
    await Promise.all(workers.map((worker) => once(worker, "exit")));
    console.log(`${(await baton.queue("cars").status()).waiting} items are left`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
