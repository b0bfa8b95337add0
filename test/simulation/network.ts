import type { FaultKind } from "./history.ts";
import type { Random } from "../kit/random.ts";
import type { FaultRates, Settings } from "./settings.ts";

/** What will happen to one call on its way to the store and back. */
export interface Fate {
  readonly requestMs: number;
  readonly replyMs: number;
  readonly lost: "request" | "reply" | undefined;
  /** When something was lost: how long until the caller is told that the outcome is unknown. */
  readonly giveUpMs: number;
  /** The request arrives a second time, this much later. */
  readonly againMs: number | undefined;
  readonly crash: "before" | "between" | undefined;
  /** To be written down when the request leaves, and when the reply does. */
  readonly onRequest: readonly FaultKind[];
  readonly onReply: readonly FaultKind[];
}

/** Calls that a network may send twice without breaking the promise that calls of one handle keep their order. */
export type Repeatable = "repeatable" | "once";

/** Draws what happens to the calls of one process. */
export class Network {
  readonly #random: Random;
  readonly #settings: Settings;
  readonly #isCalm: () => boolean;
  partitioned = false;

  constructor(random: Random, settings: Settings, isCalm: () => boolean) {
    this.#random = random;
    this.#settings = settings;
    this.#isCalm = isCalm;
  }

  fate(repeatable: Repeatable): Fate {
    const random = this.#random;
    const requestMs = this.#delayMs();
    const replyMs = this.#delayMs();
    const easy = { requestMs, replyMs, lost: undefined, giveUpMs: 0, againMs: undefined, crash: undefined };
    if (this.#isCalm()) return { ...easy, onRequest: [], onReply: [] };
    const rates: FaultRates = this.#settings.faults;
    const { leaseMs } = this.#settings;
    const slow = random.chance(rates.slow);
    const lost = random.chance(rates.requestLost) ? "request" : random.chance(rates.replyLost) ? "reply" : undefined;
    const again = repeatable === "repeatable" && random.chance(rates.duplicated);
    const crash = random.chance(rates.crashInCall) ? random.pick(["before", "between"] as const) : undefined;
    // Slow can mean that the answer comes when the lease is long over.
    const slowRequestMs = slow && random.chance(0.5) ? random.next() * leaseMs * 1.5 : 0;
    const slowReplyMs = slow && slowRequestMs === 0 ? random.next() * leaseMs * 1.5 : 0;
    const onRequest: FaultKind[] = [];
    const onReply: FaultKind[] = [];
    if (slow) (slowRequestMs > 0 ? onRequest : onReply).push("slow");
    if (lost === "request") onRequest.push("request lost");
    if (lost === "reply") onReply.push("reply lost");
    if (again) onRequest.push("duplicated");
    return {
      requestMs: requestMs + slowRequestMs,
      replyMs: replyMs + slowReplyMs,
      lost,
      giveUpMs: random.between(20, leaseMs),
      againMs: again ? random.next() * leaseMs * random.pick([0.1, 1, 2]) : undefined,
      crash,
      onRequest,
      onReply,
    };
  }

  /** Whether something wrong is heard of a lease, and when. */
  hint(): { readonly isFalse: boolean; readonly afterMs: number } {
    const random = this.#random;
    return { isFalse: !this.#isCalm() && random.chance(0.05), afterMs: random.next() * random.pick([10, 60, 300]) };
  }

  #delayMs(): number {
    return this.#random.next() * this.#random.pick([0.5, 2, 10]);
  }
}
