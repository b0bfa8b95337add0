import type { Clock } from "../domain/clock.ts";

/** An item whose lease was lost so often runs alone: a kill or a deploy loses once, an item that kills its process does it again. */
export const SUSPECT_LOSSES = 2;

/** A worker of this process. */
export interface Resident {
  /** It has no lease, and no call under way that may bring one, but for an item that waits to run alone. */
  readonly isQuiet: boolean;
  /** Begin nothing more, and give back what has not begun. */
  hush(): void;
  /** Begin the one that waits, and say `over` when the store knows how it ended. */
  beginAlone(): void;
  /** Go on as usual. */
  goOn(): void;
}

/**
 * Lets an item that may kill its process run alone in it, so that it takes nobody with it. One at a time has a lease for that: another would
 * lose it with the process.
 *
 *   open ──ask()──▶ wanted (nothing begins) ──all workers are quiet──▶ alone ──over()──▶ open
 */
export class Solitude {
  readonly #residents = new Set<Resident>();
  #wantedBy: Resident | undefined;
  #isAlone = false;

  /** Nothing begins in this process but what runs alone. */
  get isWanted(): boolean {
    return this.#wantedBy !== undefined;
  }

  enter(resident: Resident): void {
    this.#residents.add(resident);
  }

  leave(resident: Resident): void {
    this.#residents.delete(resident);
    this.over(resident);
    this.look();
  }

  /** This worker has an item that is to run alone, and nobody else has. */
  ask(resident: Resident): void {
    this.#wantedBy = resident;
    for (const one of this.#residents) one.hush();
    this.look();
  }

  /** A worker may have become quiet. */
  look(): void {
    if (this.#wantedBy === undefined || this.#isAlone) return;
    for (const one of this.#residents) if (!one.isQuiet) return;
    this.#isAlone = true;
    this.#wantedBy.beginAlone();
  }

  /** What ran alone has ended, or is not to run any more. */
  over(resident: Resident): void {
    if (this.#wantedBy !== resident) return;
    this.#wantedBy = undefined;
    this.#isAlone = false;
    for (const one of this.#residents) one.goOn();
  }
}

const ofProcess = new WeakMap<Clock, Solitude>();

/** The one of this process: whatever is in it shares a clock. A simulated process has a clock, and with it a solitude, of its own. */
export function solitudeOf(clock: Clock): Solitude {
  let solitude = ofProcess.get(clock);
  if (solitude === undefined) ofProcess.set(clock, (solitude = new Solitude()));
  return solitude;
}
