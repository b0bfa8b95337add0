import type { Clock, Engine } from "../../src/index.ts";
import type { Rule } from "../checker/violation.ts";
import type { FaultKind } from "../faults/plan.ts";
import type { Part } from "../process/part.ts";

/** A fault in the product, planted around it: nothing inside the product can be switched off. */
export interface Flaw {
  /** What is wrong, in a sentence. */
  readonly story?: string;
  readonly engine?: (inner: Engine, part: Part) => Engine;
  /** The clock by which workers keep their local deadlines. */
  readonly clock?: () => Clock;
  /** The faults that bring it out. Undefined: all. */
  readonly faults?: readonly FaultKind[];
  /** The rules of the checker that must notice it: at least one of them does. */
  readonly breaks?: readonly Rule[];
}
