/** One process with many idle workers, which counts how often it asks its store for work. */
import { connect } from "../../../src/index.ts";
import { openStore } from "./open-store.ts";
import { type FromHerd, type HerdTask, QUEUE, type ToHerd } from "./messages.ts";

/** Long enough that the items of one submit do not all go to the first who looks, one after the other. */
const WORK_MS = 50;

const task = JSON.parse(process.argv[2] ?? "{}") as HerdTask;
const { engine, looks } = await openStore(task);
const baton = await connect(engine);
const queue = baton.queue(QUEUE);

for (let number = 0; number < task.workers; number += 1) {
  queue.work(async ({ id }) => {
    await new Promise((resolve) => setTimeout(resolve, WORK_MS));
    tell({ type: "done", id });
  });
}

process.on("message", (message: ToHerd) => {
  if (message === "looks") void looks().then((count) => tell({ type: "looks", looks: count }));
  else void baton.close().then(() => process.disconnect());
});
tell({ type: "ready" });

function tell(message: FromHerd): void {
  process.send?.(message);
}
