import type { Clock } from "../../../src/domain/clock.ts";
import type { Engine } from "../../../src/engine/port.ts";
import type { Random } from "../../kit/random.ts";
import type { VirtualTime } from "../virtual-time.ts";

/** One planted bug, in one run. It can sit in the store or its clock, in a process's clock, or in its driver. */
export interface Plant {
  readonly store?: (handle: Engine) => Engine;
  readonly storeClock?: (clock: Clock) => Clock;
  readonly clock?: (clock: Clock) => Clock;
  readonly client?: (engine: Engine, clock: Clock) => Engine;
}

/** Made anew for each run, because most bugs have a memory. */
export type MakePlant = (run: { readonly time: VirtualTime; readonly random: Random }) => Plant;
