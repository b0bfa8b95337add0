import type { Clock } from "../../domain/clock.ts";
import type { Lane } from "./lane.ts";
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
  /** Something came to a queue, or a key of it is free; others were told, or not. */
  changed(queue: number, rung: boolean): void;
  /** Items of a queue have ended; others were told, or not. */
  ended(queue: number, rung: boolean): void;
  /** Somebody waits from now on. */
  waits(): void;
}
