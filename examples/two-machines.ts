/**
 * Two machines' worth of processes on NATS: every process connects to the same server, and no two of them, wherever they
 * run, work on one key at a time. One process is killed in the middle of its work; its car goes to another when its lease
 * runs out. With NATS_URL set, an own server of yours is used; otherwise one is started for the while.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "batonq";
import { startNatsServer } from "../servers/nats-server.ts";

const [role, url = "", machine = ""] = process.argv.slice(2);
if (role === "worker") await work();
else await main();

async function work(): Promise<void> {
  await using baton = await connect(url);
  const cars = baton.queue<string>("cars", { lease: "1s" });
  const worker = cars.work(
    async (item, lease) => {
      console.log(`${machine} ${process.pid}: ${item.key}, ${item.payload}, attempt ${item.attempt}`);
      process.send?.(item.key);
      // The first process to wash car2 never gets anywhere.
      if (item.id === "car2-wash" && item.attempt === 1) await wait(60_000, undefined, { signal: lease.signal });
      await wait(30);
    },
    { concurrency: 2 },
  );
  process.on("SIGTERM", () => void worker.stop({ grace: "1s" }));
  await worker.stopped;
}

async function main(): Promise<void> {
  const server = process.env["NATS_URL"] === undefined ? await startNatsServer() : undefined;
  const store = process.env["NATS_URL"] ?? server?.url ?? "";
  try {
    await using baton = await connect(store);
    const cars = baton.queue<string>("cars");
    const workers = ["machine A", "machine A", "machine B", "machine B"].map((name) =>
      fork(import.meta.filename, ["worker", store, name]),
    );
    const ended = workers.map((worker) => once(worker, "exit"));
    for (const worker of workers) {
      worker.on("message", (key) => {
        if (key !== "car2" || workers.some(({ killed }) => killed)) return;
        console.log(`killing ${String(worker.pid)}, which works on car2`);
        worker.kill("SIGKILL");
      });
    }
    const jobs = ["wash", "wax"].flatMap((job) =>
      ["car1", "car2", "car3"].map((key) => ({ key, payload: job, id: `${key}-${job}` })),
    );
    const receipts = await cars.submitMany(jobs);
    await Promise.all(receipts.map((receipt) => receipt.outcome({ timeout: "30s" })));
    for (const worker of workers.filter(({ killed }) => !killed)) worker.kill("SIGTERM");
    await Promise.all(ended);
    const { waiting, running } = await cars.status();
    console.log(`${waiting + running} items are left`);
  } finally {
    await server?.stop();
  }
}
