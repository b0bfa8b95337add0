import { type Clock, systemClock } from "../domain/clock.ts";
import { checkFunction, checkOptions, type OptionNames } from "../domain/options.ts";
import type { RelayEvent, Tell } from "./events.ts";

/** What all parts of one relay share. */
export interface RelayContext {
  readonly clock: Clock;
  readonly random: () => number;
  readonly tell: Tell;
}

export interface RelayOptions {
  /** Hears what the relay has to tell. */
  readonly onEvent?: ((event: RelayEvent) => void) | undefined;
  /** For tests. */
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
}

const RELAY_OPTIONS: OptionNames<RelayOptions> = { onEvent: true, clock: true, random: true };

/** Looked at before anything is opened. */
export function checkRelayOptions(options: RelayOptions): RelayOptions {
  const { onEvent, random } = checkOptions(options, RELAY_OPTIONS);
  if (onEvent !== undefined) checkFunction(onEvent, "onEvent", "hears events");
  if (random !== undefined) checkFunction(random, "random", "returns a number from 0 to 1");
  return options;
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
