import { now } from "../history/clock.ts";
import type { Recorder } from "../history/recorder.ts";

const LOOK_EVERY_MS = 25;
/** On a busy machine a timer may come a few milliseconds late; this late, the process was not running. */
const LATE_MS = 75;

/** Writes down when this process stood still, whoever did that: a signal, a blocked event loop, or a machine with too much to do. */
export function watchStalls(record: Recorder): () => void {
  let looked = now();
  const timer = setInterval(() => {
    const at = now();
    if (at - looked > LOOK_EVERY_MS + LATE_MS) record({ type: "paused", at, since: looked, why: "stood still" });
    looked = at;
  }, LOOK_EVERY_MS);
  return () => clearInterval(timer);
}

/** Nothing of this process runs for so long, as when a handler computes without a break. */
export function block(forMs: number, record: Recorder): void {
  const since = now();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, forMs);
  record({ type: "paused", since, why: "blocked" });
}
