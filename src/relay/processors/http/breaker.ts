import type { Timer } from "../../../domain/clock.ts";
import type { RelayContext } from "../../context.ts";
import type { BreakerSettings } from "../../settings.ts";

/**
 * Keeps deliveries from a target that cannot be reached, or does not serve.
 *
 *   closed ──so many failures in a row, of different messages──▶ open ──its time is over, and somebody comes──▶ probing
 *     ▲                                                          ▲                                               │
 *     └───────────────────────────── it was served ──────────────┼───────────────────────────────────────────────┤
 *                                                                └───────────────────── it was not ──────────────┘
 *
 * A probe may be hours of work: one that has gone on for a while without failing has reached its target, and nobody
 * waits for its end. Failures count once per key: one key that fails for ever must not close the way for the others.
 */
export class Breaker {
  readonly #context: RelayContext;
  readonly #settings: BreakerSettings | undefined;
  readonly #target: string;
  readonly #probeMs: number;
  readonly #onRoom: () => void;
  readonly #failing = new Set<string>();
  #state: "closed" | "open" | "probing" = "closed";
  #openUntil = 0;
  #timer: Timer | undefined;

  /** @param probeMs how long a probe goes on before it counts as served; longer than it takes to connect in vain */
  constructor(
    context: RelayContext,
    settings: BreakerSettings | undefined,
    { target, probeMs, onRoom }: { readonly target: string; readonly probeMs: number; readonly onRoom: () => void },
  ) {
    this.#context = context;
    this.#settings = settings;
    this.#target = target;
    this.#probeMs = probeMs;
    this.#onRoom = onRoom;
  }

  get isOpen(): boolean {
    return this.#state !== "closed";
  }

  /** How many deliveries may go on their way. */
  get room(): number {
    if (this.#state === "closed") return Infinity;
    return this.#state === "open" && this.waitMs === 0 ? 1 : 0;
  }

  /** Until a probe may be sent. */
  get waitMs(): number {
    return Math.max(0, Math.ceil(this.#openUntil - this.#context.clock.monotonic()));
  }

  /** Whether a delivery may go on its way; the first one after the time is over is the probe. */
  enter(): boolean {
    if (this.room === 0) return false;
    if (this.#state === "open") {
      this.#change("probing");
      this.#timer?.cancel();
      this.#timer = this.#context.clock.setTimer(this.#probeMs, () => this.succeeded());
    }
    return true;
  }

  succeeded(): void {
    this.#failing.clear();
    if (this.#state === "closed") return;
    this.#timer?.cancel();
    this.#change("closed");
    this.#onRoom();
  }

  failed(subject: string): void {
    if (this.#settings === undefined) return;
    this.#failing.add(subject);
    if (this.#state === "probing" || (this.#state === "closed" && this.#failing.size >= this.#settings.failures))
      this.#open(this.#settings.openMs);
  }

  /** A delivery was broken off by us: it says nothing of the target, and another may probe. */
  brokenOff(): void {
    if (this.#state === "probing") this.#open(0);
  }

  close(): void {
    this.#timer?.cancel();
  }

  #open(forMs: number): void {
    this.#openUntil = this.#context.clock.monotonic() + forMs;
    this.#change("open");
    this.#timer?.cancel();
    this.#tellWhenOver();
    this.#onRoom();
  }

  /** A timer may fire a little before its time; whoever was told then would find no room, and nobody would ask again. */
  #tellWhenOver(): void {
    this.#timer = this.#context.clock.setTimer(this.waitMs, () => {
      if (this.waitMs > 0) this.#tellWhenOver();
      else this.#onRoom();
    });
  }

  #change(state: "closed" | "open" | "probing"): void {
    this.#state = state;
    this.#context.tell({ type: "circuit", target: this.#target, state });
  }
}
