import type { Clock } from "../domain/clock.ts";
import type { Engine } from "../engine/port.ts";

/** The store that is put to the test. */
export interface ConformanceTarget {
  readonly name: string;
  /** One more handle on the same store. The suite closes it. */
  open(): Promise<Engine>;
  /**
   * Stops the store and starts it again with its state kept; no handle is open meanwhile. Or the reason why this
   * cannot be done, which is reported with the cases that are left out for it.
   */
  readonly restart: (() => Promise<void>) | string;
  /** Names of cases with the reason for leaving them out. */
  readonly skip?: Readonly<Record<string, string>> | undefined;
  /** The lease that is let run out: long enough for the store's slowest answer. Default 400. */
  readonly leaseMs?: number | undefined;
  /** The clock that the engine reads. Default: that of the system. */
  readonly clock?: Clock | undefined;
}
