/** Counts under a lock until it is killed. Careless on purpose: it never looks whether the lock is still its own. */
import { type Baton, BatonError, connect, LockLost } from "../../../src/index.ts";
import { Counter } from "./counter.ts";

const [url = "", file = "", checked = "", lease = ""] = process.argv.slice(2);
/** One count in so many stands still for two leases, between reading and writing. */
const STALLS = 25;

const baton = await open();
const counter = new Counter(file, checked === "checked");
process.send?.("ready");
for (;;) {
  try {
    await baton.withLock("counter", ({ fence }) => count(fence), { lease: Number(lease) });
  } catch (error) {
    if (!(error instanceof LockLost)) console.error(error);
  }
}

/** Another one may have been stopped in the middle of a write to the file: then it is locked until that one goes on. */
async function open(): Promise<Baton> {
  for (;;) {
    try {
      return await connect(url, { onEvent: () => undefined });
    } catch (error) {
      if (!(error instanceof BatonError) || error.code !== "STORE_UNAVAILABLE") throw error;
    }
  }
}

function count(fence: number): void {
  const n = counter.read(fence);
  if (Math.random() * STALLS < 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * Number(lease));
  counter.write(n + 1, fence);
}
