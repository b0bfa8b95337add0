import type { Clock } from "../domain/clock.ts";
import type { Engine } from "../engine/port.ts";
import type { Outages } from "../worker/outages.ts";
import type { BatonEvent } from "./events.ts";

/** What the queues, workers and receipts of one connection share. */
export interface Shared {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly random: () => number;
  readonly emit: (event: BatonEvent) => void;
  readonly outages: Outages;
  /** The connection was closed, or is being closed: nothing new begins. */
  closed: boolean;
  /** Those that closing the connection has to stop. */
  readonly workers: Set<{ stop(options: { readonly grace?: number | string }): Promise<unknown> }>;
}
