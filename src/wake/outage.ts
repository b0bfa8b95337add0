import { BatonError } from "../domain/errors.ts";
import { isError } from "../domain/realms.ts";
import type { Clock } from "../domain/clock.ts";

/** What an application may want to know of its carrier. Nothing needs to be done about any of it for the queue to stay correct. */
export type WakeEvent =
  /** The carrier is away, or refuses. Told once, however often it is tried meanwhile. */
  | { readonly type: "wakes-lost"; readonly carrier: string; readonly error: unknown }
  | { readonly type: "wakes-back"; readonly carrier: string; readonly afterMs: number };

/** What a person should see when nobody listens to events. */
export function describeWakeWarning(event: WakeEvent): string | undefined {
  if (event.type === "wakes-back") return undefined;
  const { carrier, error } = event;
  return (
    `Wake-ups are not carried over ${carrier}: ${reasonOf(error)}. Nothing is lost. Until the carrier is back, ` +
    "idle workers of other processes start new work when they next look for it, seconds later."
  );
}

/**
 * An error of Baton says what happened, what that means, and what to do. The second and third part are about a call to a store: that nothing
 * was done and that it can be repeated must not stand beside an item that was accepted.
 */
function reasonOf(error: unknown): string {
  const message = isError(error) ? error.message : String(error);
  const first = error instanceof BatonError ? /^.*?(?=\. [A-Z]|\.?$)/s.exec(message)?.[0] : undefined;
  return first ?? message.replace(/\.$/, "");
}

/** Says once that the carrier is away, and once that it is back. */
export class Outage {
  readonly #carrier: string;
  readonly #clock: Clock;
  readonly #tell: (event: WakeEvent) => void;
  #since: number | undefined;

  constructor(carrier: string, clock: Clock, tell: (event: WakeEvent) => void) {
    this.#carrier = carrier;
    this.#clock = clock;
    this.#tell = tell;
  }

  failed(error: unknown): void {
    if (this.#since !== undefined) return;
    this.#since = this.#clock.monotonic();
    this.#tell({ type: "wakes-lost", carrier: this.#carrier, error });
  }

  worked(): void {
    if (this.#since === undefined) return;
    const afterMs = Math.round(this.#clock.monotonic() - this.#since);
    this.#since = undefined;
    this.#tell({ type: "wakes-back", carrier: this.#carrier, afterMs });
  }
}
