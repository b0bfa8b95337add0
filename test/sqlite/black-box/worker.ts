/** A worker process of the black-box run. It writes down all that it does, and blocks its event loop when told to. */
import { setTimeout as wait } from "node:timers/promises";
import { connect, type HeldLease, type BatonEvent } from "../../../src/index.ts";
import { now, recorder } from "./history.ts";
import { LEASE_MS, QUEUE, RETRY } from "./settings.ts";

const [url = "", folder = "", name = ""] = process.argv.slice(2);
const record = recorder(folder, name);
/** How often a handler looks at its lease. */
const LOOK_MS = 20;

/** The fence under which this process last had an item: the event that an item is done does not say. */
const fences = new Map<string, number>();

function onEvent(event: BatonEvent): void {
  if (event.type === "done") settled(event.item.id);
  if (event.type === "discarded") record({ type: "refused", at: now(), item: event.item.id, fence: event.fence });
}

function settled(item: string): void {
  record({ type: "settled", at: now(), item, fence: fences.get(item) ?? 0 });
}

async function workFor(ms: number, lease: HeldLease): Promise<void> {
  let until = now() + lease.leftMs;
  for (const end = now() + ms; now() < end;) {
    await wait(Math.min(LOOK_MS, ms), undefined, { signal: lease.signal });
    const later = now() + lease.leftMs;
    // It moves by renewals only; what is less is the time between two looks at the clock.
    if (lease.leftMs > 0 && later > until + 1) {
      until = later;
      record({ type: "renewed", at: now(), until, fence: lease.fence });
    }
  }
}

const baton = await connect(url, { onEvent });
const cars = baton.queue<{ readonly workMs: number }>(QUEUE, { lease: LEASE_MS, retry: RETRY });
cars.work(
  async ({ id, key, attempt, payload }, lease) => {
    const { fence } = lease;
    fences.set(id, fence);
    // Read in this order, so that a pause in between makes the time shorter, never longer.
    const at = now();
    record({ type: "began", at, until: at + lease.leftMs, worker: name, item: id, key, fence, attempt });
    let done = false;
    try {
      await workFor(payload.workMs, lease);
      done = true;
    } finally {
      record({ type: "ended", at: now(), item: id, fence, done });
    }
  },
  { concurrency: 3, name },
);

process.on("message", (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms));
process.once("disconnect", () => void baton.close({ grace: "100ms" }));
process.send?.("ready");
