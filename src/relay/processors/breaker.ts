import type { Timer } from "../../domain/clock.ts";
import type { RelayContext } from "../context.ts";
import type { BreakerSettings } from "../settings.ts";

export interface BreakerParts {
  readonly target: string;
  /** How long a probe goes on before it counts as served; longer than it takes to connect in vain. */
  readonly probeMs: number;
  readonly onRoom: () => void;
  /** Whether the target accepts a connection. Undefined: only a delivery can tell. */
  readonly knock: (() => Promise<boolean>) | undefined;
}

/** After a target could not be reached, it is knocked at so soon; each time in vain doubles that, up to the longest. */
const FIRST_KNOCK_MS = 250;
/** A receiver that is back waits for its messages for no longer than this. A knock costs one connection. */
const LONGEST_KNOCK_MS = 2_000;

/**
 * Keeps deliveries from a target that cannot be reached, or does not serve.
 *
 *   closed ──so many failures in a row, of different keys──▶ open, until its time is over ─┐
 *     ▲ └────────it could not be reached, even once────────▶ open, until a knock is heard ─┤
 *     │                                                                                     ▼
 *     ├──────────────────────── it was served ──────────────────────────────── probing: one delivery
 *                                                       open again ◀── it was not ──────────┘
 *
 * A knock takes no message out of its queue, so that an outage, however long, uses up no receives. A probe may be hours
 * of work: one that has gone on for a while without failing has reached its target, and nobody waits for its end.
 * Failures count once per key: one key that fails for ever must not close the way for the others.
 */
export class Breaker {
  readonly #context: RelayContext;
  readonly #settings: BreakerSettings | undefined;
  readonly #parts: BreakerParts;
  readonly #failing = new Set<string>();
  #state: "closed" | "open" | "probing" = "closed";
  /** Infinity: until a knock is heard. */
  #openUntil = 0;
  #knockMs = FIRST_KNOCK_MS;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(context: RelayContext, settings: BreakerSettings | undefined, parts: BreakerParts) {
    this.#context = context;
    this.#settings = settings;
    this.#parts = parts;
  }

  get isOpen(): boolean {
    return this.#state !== "closed";
  }

  /** It accepted no connection when it was last tried. */
  get isUnreachable(): boolean {
    return this.#state === "open" && this.#openUntil === Infinity;
  }

  /** How many deliveries may go on their way. */
  get room(): number {
    if (this.#state === "closed") return Infinity;
    return this.#state === "open" && this.waitMs === 0 ? 1 : 0;
  }

  /** Until a probe may be sent; Infinity while nobody knows. */
  get waitMs(): number {
    return Math.max(0, Math.ceil(this.#openUntil - this.#context.clock.monotonic()));
  }

  /** Whether a delivery may go on its way; the first one after the time is over is the probe. */
  enter(): boolean {
    if (this.room === 0) return false;
    if (this.#state === "open") {
      this.#change("probing");
      this.#timer?.cancel();
      this.#timer = this.#context.clock.setTimer(this.#parts.probeMs, () => this.succeeded());
    }
    return true;
  }

  succeeded(): void {
    this.#failing.clear();
    // What was under way when the way was closed says nothing of a target that accepts no connection now.
    if (this.#state === "closed" || this.isUnreachable) return;
    this.#knockMs = FIRST_KNOCK_MS;
    this.#timer?.cancel();
    this.#change("closed");
    this.#parts.onRoom();
  }

  failed(subject: string, reason?: string): void {
    if (this.#settings === undefined) return;
    this.#failing.add(subject);
    if (this.#state === "probing" || (this.#state === "closed" && this.#failing.size >= this.#settings.failures))
      this.#open(this.#settings.openMs, reason);
  }

  /** One is enough: whatever the messages are, none of them would get there. */
  unreachable(reason: string): void {
    if (this.#settings === undefined || this.isUnreachable) return;
    if (this.#parts.knock === undefined) {
      if (this.#state !== "open") this.#open(this.#settings.openMs, reason);
    } else {
      this.#open(Infinity, reason);
    }
  }

  /** A delivery was broken off by us: it says nothing of the target, and another may probe. */
  brokenOff(): void {
    if (this.#state === "probing") this.#open(0);
  }

  close(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  #open(forMs: number, reason?: string): void {
    if (this.#isOver) return;
    this.#openUntil = this.#context.clock.monotonic() + forMs;
    this.#change("open", reason);
    this.#timer?.cancel();
    if (forMs === Infinity) this.#knockLater();
    else this.#tellWhenOver();
    this.#parts.onRoom();
  }

  /** A timer may fire a little before its time; whoever was told then would find no room, and nobody would ask again. */
  #tellWhenOver(): void {
    this.#timer = this.#context.clock.setTimer(this.waitMs, () => {
      if (this.waitMs > 0) this.#tellWhenOver();
      else this.#parts.onRoom();
    });
  }

  #knockLater(): void {
    const { clock, random } = this.#context;
    // Relays that lost the same receiver do not come back to it all at the same moment.
    this.#timer = clock.setTimer(this.#knockMs * (0.5 + random() / 2), () => void this.#knock());
    const longest = Math.min(LONGEST_KNOCK_MS, this.#settings?.openMs ?? LONGEST_KNOCK_MS);
    this.#knockMs = Math.min(this.#knockMs * 2, Math.max(longest, FIRST_KNOCK_MS));
  }

  async #knock(): Promise<void> {
    const isHeard = (await this.#parts.knock?.()) ?? true;
    if (this.#isOver || !this.isUnreachable) return;
    if (!isHeard) return this.#knockLater();
    this.#openUntil = this.#context.clock.monotonic();
    this.#parts.onRoom();
  }

  #change(state: "closed" | "open" | "probing", reason?: string): void {
    this.#state = state;
    const { target } = this.#parts;
    this.#context.tell({ type: "circuit", target, state, ...(reason === undefined ? {} : { reason }) });
  }
}
