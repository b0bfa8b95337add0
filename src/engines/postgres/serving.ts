import type { Due } from "./due.ts";
import type { Handle } from "./handle.ts";
import type { Inspection } from "./inspect.ts";
import type { Leases } from "./leases.ts";

/** A handle as those of its parts see it that serve calls, by means of the others. */
export interface ServingHandle extends Handle {
  readonly leases: Leases;
  readonly due: Due;
  readonly inspection: Inspection;
}
