import type { Engine } from "../../../src/engine/port.ts";
import type { Allowance } from "./generator.ts";
import type { Gate } from "./gate.ts";
import type { Pace } from "./timeline.ts";

/** The store that scripts are played on. */
export interface Store extends Pace {
  readonly name: string;
  /** One more handle. */
  open(): Promise<Engine>;
  /** Opens handles of a place that nobody else has open, so that to close them all is to stop the store. */
  apart?(): () => Promise<Engine>;
  /** Ready keys of one level are handed out in the order in which they became ready, to the last one. */
  readonly isOrdered: boolean;
  /** What has come due is seen when somebody asks for work. */
  readonly comesWhenAsked: boolean;
  /** Fields with times that are not compared. */
  readonly looseTimes: readonly string[];
  readonly allowance: Allowance;
  /** So many scripts are played side by side: most of a script is waiting. */
  readonly atOnce: number;
  /** Of these, so many ask at the same time. */
  readonly gate: Gate;
  /** What is counted of a queue is exact. */
  readonly countsExactly: boolean;
  /** Limits that hold also among those who submit at once: all, or those per key. */
  readonly exactLimits: "all" | "key" | "none";
  /** Rounds of a plan for several handles, and plans that are played side by side. */
  readonly rounds: number;
  readonly plansAtOnce: number;
  /** Where its server listens, and a handle that goes there by way of another host and port. */
  readonly port?: () => number;
  readonly openAt?: (host: string) => Promise<Engine>;
}
