/** SQLite keeps readings of one process's clock for others: they have to be of one clock. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { clockOffset } from "./clock-offset.ts";

const THREADS = 8;
/** Stores count whole milliseconds. */
const MOST_APART_MS = 0.5;

test("every thread reads the same monotonic clock, also the first time", async () => {
  const offsets = await Promise.all(Array.from({ length: THREADS }, () => offsetInThread()));
  offsets.push(clockOffset());
  const apart = Math.max(...offsets) - Math.min(...offsets);
  assert.ok(apart < MOST_APART_MS, `${apart} ms`);
});

async function offsetInThread(): Promise<number> {
  const code = `
    import { parentPort } from "node:worker_threads";
    import { clockOffset } from ${JSON.stringify(import.meta.resolve("./clock-offset.ts"))};
    parentPort.postMessage(clockOffset());
  `;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  return await new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}
