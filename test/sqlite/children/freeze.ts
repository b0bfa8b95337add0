/** A worker with free slots whose first handler blocks the event loop for two leases. Tells when handlers begin, and when it blocks. */
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "../../../src/index.ts";

const [url = "", blockMs = ""] = process.argv.slice(2);
const baton = await connect(url, { onEvent: (event) => tell({ event }) });
const cars = baton.queue<string>("cars", { lease: "2s", retry: { attempts: 2, backoff: 0 }, history: "1h" });
let hasBlocked = false;
const worker = cars.work(
  async (item) => {
    tell({ began: item.key, attempt: item.attempt });
    if (hasBlocked) return;
    hasBlocked = true;
    await wait(300);
    await new Promise<void>((resolve) => process.send?.({ blocks: item.key }, () => resolve()));
    const until = performance.now() + Number(blockMs);
    while (performance.now() < until);
  },
  { concurrency: 3 },
);
process.once("disconnect", () => void baton.close());
await worker.ready;
tell("ready");

function tell(what: unknown): void {
  process.send?.(what);
}
