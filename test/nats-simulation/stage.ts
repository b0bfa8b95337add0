import type { Lease } from "../../src/engine/port.ts";
import type { What } from "./history.ts";
import type { ItemPlan, Plan } from "./plan.ts";
import type { NatsProcess } from "./process.ts";

/** What everybody who acts in a run may use. */
export interface Stage {
  readonly plan: Plan;
  /** No more faults. */
  readonly calm: boolean;
  log(what: What): void;
  nextCall(): number;
  /** Writes down a lease, and gives it a number of its own. */
  granted(
    process: NatsProcess,
    lease: Lease,
    item?: { readonly token: number; readonly id: string; readonly attempt: number },
  ): number;
  planOf(token: number): ItemPlan;
  /** Whatever it throws was not foreseen. */
  begin(work: Promise<unknown>): void;
}
