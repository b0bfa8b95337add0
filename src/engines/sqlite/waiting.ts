import type { Reply, Requests } from "./messages.ts";

interface WaitingClaim {
  readonly call: number;
  readonly request: Requests["claim"];
}

interface WaitingOutcome {
  readonly call: number;
  readonly queue: number;
  readonly request: Requests["outcome"];
}

/** The calls of this process that wait for something to happen, in the order in which they came. */
export class Waiting {
  readonly #claims = new Map<number, WaitingClaim>();
  readonly #outcomes = new Map<number, WaitingOutcome>();

  get empty(): boolean {
    return this.#claims.size === 0 && this.#outcomes.size === 0;
  }

  get noOutcomes(): boolean {
    return this.#outcomes.size === 0;
  }

  addClaim(call: number, request: Requests["claim"]): void {
    this.#claims.set(call, { call, request });
  }

  addOutcome(call: number, queue: number, request: Requests["outcome"]): void {
    this.#outcomes.set(call, { call, queue, request });
  }

  claims(): readonly WaitingClaim[] {
    return [...this.#claims.values()];
  }

  queues(): readonly string[] {
    return [...new Set(this.claims().map(({ request }) => request.queue))];
  }

  /** Those who wait for one of these items, or all. */
  outcomes(of?: readonly { readonly queue: number; readonly id: string }[]): readonly WaitingOutcome[] {
    const all = [...this.#outcomes.values()];
    if (of === undefined) return all;
    const ended = new Set(of.map(({ queue, id }) => `${queue} ${id}`));
    return all.filter(({ queue, request }) => ended.has(`${queue} ${request.id}`));
  }

  calls(): readonly number[] {
    return [...this.#claims.keys(), ...this.#outcomes.keys()];
  }

  forget(call: number): void {
    this.#claims.delete(call);
    this.#outcomes.delete(call);
  }

  /** The caller gave up: it is answered with nothing, unless it was answered already. */
  dismiss(call: number): readonly Reply[] {
    if (this.#claims.delete(call)) return [{ call, value: NOTHING_GRANTED }];
    return this.#outcomes.delete(call) ? [{ call, value: undefined }] : [];
  }

  dismissAll(): readonly Reply[] {
    return this.calls().flatMap((call) => this.dismiss(call));
  }
}

const NOTHING_GRANTED = { wall: 0, monotonic: 0, levels: [], grants: [] } as const;
