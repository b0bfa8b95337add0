import type { Clock } from "../../domain/clock.ts";
import type { Due } from "./due.ts";
import type { Inspection } from "./inspect.ts";
import type { Lane } from "./lane.ts";
import type { Leases } from "./leases.ts";
import type { Link } from "./link.ts";
import type { Queues } from "./queues.ts";
import type { Rings } from "./rings.ts";

/** What the parts of one handle share. */
export interface Handle {
  readonly link: Link;
  readonly clock: Clock;
  /** Its number, by which others tell it things. */
  readonly me: number;
  readonly queues: Queues;
  readonly lane: Lane;
  readonly rings: Rings;
  readonly leases: Leases;
  readonly due: Due;
  readonly inspection: Inspection;
  /** Something came to a queue, or a key of it is free; others were told, or not. */
  changed(queue: number, rung: boolean): void;
  /** Items of a queue have ended; others were told, or not. */
  ended(queue: number, rung: boolean): void;
  /** Somebody waits from now on. */
  waits(): void;
}
