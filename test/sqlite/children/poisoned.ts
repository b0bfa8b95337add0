/** A worker with eight slots until the queue is empty. Some of the items kill its process. */
import { connect } from "../../../src/index.ts";

const [url = "", lease = "", attempts = ""] = process.argv.slice(2);
const baton = await connect(url);
const cars = baton.queue<string>("cars", { lease, retry: { attempts: Number(attempts), backoff: 0 }, history: "1h" });
const worker = cars.work(
  async ({ payload }) => {
    if (payload === "poison") process.kill(process.pid, "SIGKILL");
    // What runs beside it is under way when the process dies.
    await new Promise((resolve) => setImmediate(resolve));
  },
  { concurrency: 8, untilEmpty: true },
);
await worker.stopped;
await baton.close();
process.disconnect();
