import type { MemoryStore } from "../../src/engines/memory/index.ts";
import type { History } from "./history.ts";
import type { Plant } from "./planted/plant.ts";
import type { Random } from "../kit/random.ts";
import type { Numbers } from "./recording-engine.ts";
import type { Settings } from "./settings.ts";
import type { ShiftedClock } from "./shifted-clock.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** What all parts of one run share. */
export interface RunParts {
  readonly settings: Settings;
  readonly time: VirtualTime;
  readonly history: History;
  readonly random: Random;
  readonly numbers: Numbers;
  readonly store: MemoryStore;
  readonly storeClock: ShiftedClock;
  readonly plant: Plant | undefined;
  /** No more faults. */
  readonly isCalm: () => boolean;
}
