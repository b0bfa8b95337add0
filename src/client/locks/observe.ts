import { Closed } from "../../domain/errors.ts";
import type { HolderReport, LockReport } from "../../locks/port.ts";
import type { LockContext } from "./context.ts";
import { Patience, waitFor } from "./patience.ts";

/** After a watch that broke off. */
const AGAIN_MS = 1_000;

/** Who holds the lock, now and after every change. What changed again before it was looked at is told as one. */
export async function* observeHolder(
  context: LockContext,
  name: string,
  signal: AbortSignal,
): AsyncGenerator<HolderReport | undefined, void, undefined> {
  // Whoever watches is a reason for the process to live.
  using patience = new Patience(context.clock, Infinity, signal);
  let news = Promise.withResolvers<void>();
  let ended = false;
  let report: LockReport | undefined;
  const watching = watchOn(context, name, patience.signal, (changed) => {
    report = changed;
    news.resolve();
  });
  const end = (): void => {
    ended = true;
    news.resolve();
  };
  watching.then(end, end);
  // No holder has this fence.
  let last = -1;
  try {
    for (;;) {
      await news.promise;
      if (ended) return await watching;
      news = Promise.withResolvers();
      const [holder] = report?.holders ?? [];
      const fence = holder?.fence ?? 0;
      if (fence !== last) yield holder;
      last = fence;
    }
  } finally {
    patience.end();
  }
}

/** Watches until the signal fires, and begins anew when the store fails. */
async function watchOn(
  { locks, clock, outages }: LockContext,
  name: string,
  signal: AbortSignal,
  changed: (report: LockReport | undefined) => void,
): Promise<void> {
  const doing = `watching lock ${name}`;
  while (!signal.aborted) {
    try {
      await locks.watch({
        name,
        signal,
        changed: (report) => {
          outages.worked(doing);
          changed(report);
        },
      });
    } catch (error) {
      if (error instanceof Closed) throw error;
      outages.failed(doing, error);
      await waitFor(clock, AGAIN_MS, signal);
    }
  }
}
