import { type Clock, systemClock } from "../domain/clock.ts";
import type { RelayEvent, Tell } from "./events.ts";

/** What all parts of one relay share. */
export interface RelayContext {
  readonly clock: Clock;
  readonly random: () => number;
  readonly tell: Tell;
}

export interface RelayOptions {
  /** Hears what the relay has to tell. */
  readonly onEvent?: (event: RelayEvent) => void;
  /** For tests. */
  readonly clock?: Clock;
  readonly random?: () => number;
}

export function contextOf({ onEvent, clock = systemClock, random = Math.random }: RelayOptions): RelayContext {
  return {
    clock,
    random,
    tell: (event) => {
      try {
        onEvent?.(event);
      } catch {
        // A listener that throws must not take deliveries down with it.
      }
    },
  };
}
