import { Backoff } from "../domain/backoff.ts";
import { BatonError, isAway, QueueMissing } from "../domain/errors.ts";
import type { Engine, Grant, Lease } from "../engine/port.ts";
import type { Outages } from "./outages.ts";

/** A second claim may be under way for slots that came free after the first was sent; more would only be smaller. */
const MOST_CLAIMS = 2;
/** First wait after the store refused a claim; doubles up to the longest, which is how late a worker may be when the store is back. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;
const ASKING = "asking for work";

export interface ClaimsParts {
  readonly engine: Engine;
  readonly random: () => number;
  readonly outages: Outages;
  /** The keys of one answer, and what was asked for. */
  readonly granted: (grants: readonly Grant[], wanted: Wanted) => void;
  readonly lost: (lease: Lease) => void;
  /** A claim is over, or asking may begin again: look whether there is something to ask for. */
  readonly again: () => void;
  /** Makes the queue known to the store again, after somebody deleted it and others use it again. */
  readonly declare: () => Promise<unknown>;
}

export interface Wanted {
  readonly max: number;
  /** Of a run. */
  readonly items: number;
}

export interface ClaimsSettings {
  readonly queue: string;
  readonly name: string;
  readonly leaseMs: number;
  readonly patienceMs: number;
}

/**
 * The claims of one worker.
 *
 *   asking ──the store refuses──▶ pausing ──it is there again──▶ asking
 *   any ──stop()──▶ stopped
 */
export class Claims {
  readonly #parts: ClaimsParts;
  readonly #settings: ClaimsSettings;
  readonly #backoff: Backoff;
  #calling = new AbortController();
  #out = 0;
  #asked = 0;
  #isPausing = false;
  #isStopped = false;

  constructor(parts: ClaimsParts, settings: ClaimsSettings) {
    this.#parts = parts;
    this.#settings = settings;
    this.#backoff = new Backoff(parts.random, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
  }

  /** Keys that claims under way may bring. */
  get asked(): number {
    return this.#asked;
  }

  /** No claim is under way. */
  get isQuiet(): boolean {
    return this.#out === 0;
  }

  /** One claim at a time asks for what is free; a second one only for a good share of it. */
  mayAsk(isGoodShare: boolean): boolean {
    if (this.#isPausing || this.#isStopped) return false;
    return this.#out === 0 || (this.#out < MOST_CLAIMS && isGoodShare);
  }

  /** Calls off what waits. A grant that is on its way comes all the same. */
  callOff(): void {
    this.#calling.abort();
    this.#calling = new AbortController();
  }

  stop(): void {
    this.#isStopped = true;
    this.#calling.abort();
  }

  /** @param onAsked called when the claim is under way */
  async ask(wanted: Wanted, onAsked: () => void): Promise<void> {
    const { max, items } = wanted;
    const { engine, granted, lost, outages, again } = this.#parts;
    const { queue, name: worker, leaseMs, patienceMs } = this.#settings;
    this.#out += 1;
    this.#asked += max;
    let isOut = true;
    const over = (): void => {
      if (isOut) this.#asked -= max;
      isOut = false;
    };
    try {
      const { signal } = this.#calling;
      const asking = engine.claim({ queue, worker, max, items, leaseMs, patienceMs, signal, lost });
      onAsked();
      const grants = await asking;
      if (grants.length > 0) {
        outages.worked(ASKING);
        this.#backoff.reset();
      }
      over();
      granted(grants, wanted);
    } catch (error) {
      over();
      if (this.#isStopped) return;
      outages.failed(ASKING, error);
      if (!this.#isPausing) void this.#askLater(isMissing(error));
    } finally {
      this.#out -= 1;
      again();
    }
  }

  /**
   * A claim that waits says nothing of a store that is there again: it is asked something that has an answer. A queue that was deleted is not
   * made anew by those who wait for work in it, but by the next who submits.
   */
  async #askLater(isMissingNow: boolean): Promise<void> {
    const { engine, outages, declare, again } = this.#parts;
    const { queue } = this.#settings;
    let wasMissing = isMissingNow;
    this.#isPausing = true;
    await outages.pause(this.#backoff.next());
    while (!this.#isStopped) {
      try {
        const [report] = await engine.queues({ queue });
        if (report === undefined) throw new QueueMissing(queue);
        if (wasMissing) await declare();
        outages.worked(ASKING);
        break;
      } catch (error) {
        outages.failed(ASKING, error);
        wasMissing ||= isMissing(error);
        // It may be the report alone that fails.
        if (!isAway(error) && !isMissing(error)) break;
        await outages.pause(this.#backoff.next());
      }
    }
    this.#isPausing = false;
    again();
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof BatonError && error.code === "QUEUE_MISSING";
}
