import type { Clock, Timer } from "../../domain/clock.ts";
import type { ClaimRequest, Grant, Lease, Settlement } from "../../engine/port.ts";
import { asksForRuns } from "./run-ahead.ts";

/** Whoever ends an item so soon waits for the store more than for its own work: with 64 slots it needs 13,000 items a second. */
const QUICK_MS = 5;
/** So long a grant is kept for whoever is quick: several times what it should take. */
const KEPT_MS = 20;
/** With fewer slots others would have as much use for the keys. */
const LEAST_SLOTS = 16;
/** So many keys for each slot, and no more than so many in all: two steps side by side take no more. */
const PER_SLOT = 4;
const MOST_AHEAD = 256;

interface Kept {
  readonly grant: Grant;
  readonly at: number;
}

/**
 * Keys that are handed out ahead of the claim, to a worker that comes back for more at once: it goes on with these while the store settles
 * what it did before, instead of the one waiting for the other. Nobody else gets them meanwhile, so it is done only for a worker whose
 * items take no time, and what it does not come for is given back, with no attempt counted.
 */
export class Ahead {
  readonly #clock: Clock;
  readonly #giveBack: (leases: readonly Lease[]) => void;
  #request: ClaimRequest | undefined;
  #slots = 0;
  #kept: Kept[] = [];
  /** One lease at a time is watched: how long does its item take? */
  #watched: { readonly lease: Lease; readonly at: number } | undefined;
  #isQuick = false;
  /** How long an item takes. */
  #itemMs = 0;
  /** Asked for, and not here yet. */
  #ordered = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock, giveBack: (leases: readonly Lease[]) => void) {
    this.#clock = clock;
    this.#giveBack = giveBack;
  }

  /** Of whoever asked last. */
  get request(): ClaimRequest | undefined {
    return this.#request;
  }

  /** A worker asks. What was kept for another is of no use to it. */
  ask(request: ClaimRequest): void {
    if (!this.#isOf(request)) {
      this.giveBack();
      this.#slots = 0;
      this.#watched = undefined;
    }
    this.#request = request;
    // The first claim of a worker asks for all its slots.
    this.#slots = Math.max(this.#slots, request.max);
  }

  /** What a worker that asked can have at once. */
  take(request: ClaimRequest): readonly Grant[] {
    if (this.#kept.length === 0 || !this.#isOf(request)) return [];
    this.#giveBackOld(KEPT_MS);
    return this.#kept.splice(0, request.max).map(({ grant }) => grant);
  }

  /** These were handed out. */
  gave(first: Grant | undefined): void {
    if (first === undefined || this.#slots < LEAST_SLOTS) return;
    const at = this.#clock.monotonic();
    if (this.#watched !== undefined && at - this.#watched.at <= QUICK_MS) return;
    if (this.#watched !== undefined) this.#isQuick = false;
    this.#watched = { lease: first.lease, at };
  }

  /** These end. */
  end(settlements: readonly Settlement[]): void {
    const watched = this.#watched;
    if (watched === undefined || !settlements.some(({ lease }) => lease === watched.lease)) return;
    this.#itemMs = this.#clock.monotonic() - watched.at;
    this.#isQuick = this.#itemMs <= QUICK_MS;
    this.#watched = undefined;
  }

  /** The store is what whoever works here waits for. */
  get isQuick(): boolean {
    return this.#isQuick;
  }

  /** Whoever asks works off items in no time, and so has use for several of a key. */
  isQuickFor(request: ClaimRequest): boolean {
    return (
      this.#isQuick && request.once !== true && !asksForRuns(request) && this.#isOf(request) && !request.signal.aborted
    );
  }

  /** As many as are lacking are on their way, until they are kept. */
  order(request: ClaimRequest): number {
    const lack = this.lack(request);
    this.#ordered += lack;
    return lack;
  }

  /** How many more are worth having along with what this request, if it is one, is given. */
  lack(request: ClaimRequest | undefined = this.#request): number {
    if (request === undefined || !this.isQuickFor(request)) return 0;
    if (this.#watched !== undefined && this.#clock.monotonic() - this.#watched.at > QUICK_MS) return 0;
    const keys = Math.min(PER_SLOT * this.#slots, MOST_AHEAD) - this.#kept.length;
    // No more than are begun in half of the time for which they are kept.
    const items = (KEPT_MS / 2 / this.#itemMs) * this.#slots - this.#kept.length;
    return Math.max(0, Math.min(keys, Math.ceil(items)) - this.#ordered);
  }

  /** What came of an order. It is kept for whoever it was leased for; if another has come meanwhile, it goes back. */
  keep(grants: readonly Grant[], ordered: number, request: ClaimRequest): void {
    this.#ordered -= ordered;
    if (grants.length === 0) return;
    if (!this.#isOf(request)) {
      this.#giveBack(grants.map(({ lease }) => lease));
      return;
    }
    const at = this.#clock.monotonic();
    for (const grant of grants) this.#kept.push({ grant, at });
    this.#timer ??= this.#clock.setTimer(KEPT_MS, () => this.#look());
  }

  /** Nobody gets any of these any more. */
  giveBack(): void {
    this.#isQuick = false;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#giveBackOld(0);
  }

  #isOf({ worker, leaseMs }: ClaimRequest): boolean {
    return worker === this.#request?.worker && leaseMs === this.#request.leaseMs;
  }

  #look(): void {
    this.#timer = undefined;
    this.#giveBackOld(KEPT_MS);
    if (this.#kept.length > 0) this.#timer = this.#clock.setTimer(KEPT_MS, () => this.#look());
  }

  #giveBackOld(keptMs: number): void {
    const now = this.#clock.monotonic();
    const old = this.#kept.filter(({ at }) => now - at >= keptMs);
    if (old.length === 0) return;
    this.#isQuick = false;
    this.#kept = this.#kept.filter(({ at }) => now - at < keptMs);
    this.#giveBack(old.map(({ grant }) => grant.lease));
  }
}
