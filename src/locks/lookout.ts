import type { Clock } from "../domain/clock.ts";
import type { Waiter } from "./rules.ts";
import { type Sessions, signedAt } from "./sessions.ts";

interface Watched {
  /** Version of the last sign of life that was seen. */
  readonly version: number;
  /** Monotonic: when to look again. */
  readonly lookAt: number;
}

/**
 * A session that should be gone is looked at again so soon: its last sign of life took a moment to arrive, and some
 * stores count in seconds. The share of its lease, and the bounds for it.
 */
const LATE_SHARE = 1 / 16;
const LATE_MS = [20, 500] as const;
/** What is left of a lease that is renewed in time. */
const LEFT_SHARE = 2 / 3;

/**
 * Looks whether sessions still live. Nothing tells when one runs out, so each is looked at once, and then again when its last
 * sign of life has become as old as its lease.
 */
export class Lookout {
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  #watched = new Map<string, Watched>();

  constructor(sessions: Sessions, clock: Clock) {
    this.#sessions = sessions;
    this.#clock = clock;
  }

  /** The sessions that are over among those whose time to be looked at has come. The others given are looked at later. */
  async findDead(given: readonly Waiter[]): Promise<ReadonlySet<string>> {
    const before = this.#watched;
    this.#watched = new Map();
    const dead = new Set<string>();
    const looks = [...leases(given)].map(async ([id, leaseMs]) => {
      const known = before.get(id);
      const watched =
        known !== undefined && known.lookAt > this.#clock.monotonic() ? known : await this.#look(id, leaseMs, known);
      if (watched === undefined) dead.add(id);
      else this.#watched.set(id, watched);
    });
    await Promise.all(looks);
    return dead;
  }

  /** Until the next look. */
  nextMs(): number {
    let next = Infinity;
    for (const { lookAt } of this.#watched.values()) next = Math.min(next, lookAt);
    return Math.max(0, next - this.#clock.monotonic());
  }

  async #look(id: string, leaseMs: number, known: Watched | undefined): Promise<Watched | undefined> {
    const cell = await this.#sessions.read(id);
    if (cell === undefined) return undefined;
    const goneInMs = signedAt(cell) + leaseMs - this.#clock.wall();
    // Clocks of different machines disagree. Whoever has given a sign of life since the last look is not past its end.
    const hasSigned = known !== undefined && known.version !== cell.version;
    const inMs = goneInMs <= 0 && hasSigned ? leaseMs * LEFT_SHARE : Math.max(goneInMs, lateMs(leaseMs));
    return { version: cell.version, lookAt: this.#clock.monotonic() + Math.min(inMs, leaseMs) };
  }
}

function lateMs(leaseMs: number): number {
  return Math.min(Math.max(leaseMs * LATE_SHARE, LATE_MS[0]), LATE_MS[1]);
}

function leases(given: readonly Waiter[]): ReadonlyMap<string, number> {
  return new Map(given.map(({ session, leaseMs }) => [session, leaseMs]));
}
