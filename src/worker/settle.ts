import { Closed } from "../domain/errors.ts";
import { type Clock, pause } from "../domain/clock.ts";
import type { Engine, Settlement, SettleResult } from "../engine/port.ts";
import type { WorkerEvent } from "./events.ts";
import type { Run } from "./run.ts";

export interface Settled {
  readonly run: Run;
  readonly settlement: Settlement;
}

/** Between two tries to settle while the store does not answer. */
const PAUSE_MS = 100;

/**
 * Settles, and tries again while the store is out of reach, for as long as the leases are certain. Repeating is
 * safe: a settlement that did happen is refused the second time and changes nothing.
 */
export async function settleUntilCertain(
  parts: { readonly engine: Engine; readonly clock: Clock; readonly emit: (event: WorkerEvent) => void },
  settled: readonly Settled[],
): Promise<readonly SettleResult[]> {
  for (;;) {
    try {
      return await parts.engine.settle(settled.map((one) => one.settlement));
    } catch (error) {
      if (error instanceof Closed) return settled.map(() => "lost");
      parts.emit({ type: "trouble", doing: "settling items", error });
      if (settled.every(({ run }) => run.leftMs <= PAUSE_MS)) return settled.map(() => "lost");
      await pause(parts.clock, PAUSE_MS);
    }
  }
}
