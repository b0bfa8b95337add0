import { systemClock } from "../src/domain/clock.ts";

/** Of this thread's clock, from hrtime, which is the same for all: the largest of several, because a thread may stand still between two readings. */
export function clockOffset(): number {
  return Math.max(
    ...Array.from({ length: 100 }, () => systemClock.monotonic() - Number(process.hrtime.bigint()) / 1e6),
  );
}
