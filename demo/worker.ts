/** One worker process: takes cars, works on them, and writes down when it began and ended. */
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "../src/index.ts";
import { type Level, now, recorder } from "./history.ts";
import { type Job, LEASE_MS, QUEUE } from "./story.ts";

const [store = "", folder = "", name = ""] = process.argv.slice(2);
const record = recorder(folder, name);
const baton = await connect(store);
const cars = baton.queue<Job>(QUEUE, { lease: LEASE_MS });

cars.work(
  async (item, lease) => {
    const { id, key, attempt, payload } = item;
    const level = item.level as Level;
    record({ type: "start", at: now(), worker: name, item: id, car: key, level, fence: lease.fence, attempt });
    let done = false;
    try {
      await wait(attempt === 1 ? payload.workMs : payload.againMs, undefined, { signal: lease.signal });
      done = true;
    } finally {
      record({ type: "end", at: now(), worker: name, item: id, done });
    }
  },
  { name },
);

// The parent ends us by letting go, also when it dies itself. A Ctrl-C reaches us too, but is its affair.
process.on("SIGINT", () => undefined);
process.once("disconnect", () => void baton.close());
process.send?.("ready");
