import type { Reply, Requests } from "./messages.ts";

/** A call that waits, and what it asked for. */
interface WaitingCall<K extends keyof Requests> {
  readonly call: number;
  readonly request: Requests[K];
}

interface WaitingOutcome extends WaitingCall<"outcome"> {
  readonly queue: number;
}

/** The calls of this process that wait for something to happen, in the order in which they came. */
export class Waiting {
  readonly #claims = new Map<number, WaitingCall<"claim">>();
  readonly #holds = new Map<number, WaitingCall<"hold">>();
  readonly #outcomes = new Map<number, WaitingOutcome>();
  readonly #cells = new Map<number, WaitingCall<"watchCell">>();

  get empty(): boolean {
    return this.#claims.size === 0 && this.#holds.size === 0 && this.onlyForWork;
  }

  /** Nobody waits for anything that has to do with queues. */
  get onlyForCells(): boolean {
    return this.#claims.size === 0 && this.#holds.size === 0 && this.#outcomes.size === 0;
  }

  /** Nobody waits for what another process may have written elsewhere than among the ready keys. */
  get onlyForWork(): boolean {
    return this.#outcomes.size === 0 && this.#cells.size === 0;
  }

  addClaim(call: number, request: Requests["claim"]): void {
    this.#claims.set(call, { call, request });
  }

  addHold(call: number, request: Requests["hold"]): void {
    this.#holds.set(call, { call, request });
  }

  addOutcome(call: number, queue: number, request: Requests["outcome"]): void {
    this.#outcomes.set(call, { call, queue, request });
  }

  addCell(call: number, request: Requests["watchCell"]): void {
    this.#cells.set(call, { call, request });
  }

  claims(): readonly WaitingCall<"claim">[] {
    return [...this.#claims.values()];
  }

  holds(): readonly WaitingCall<"hold">[] {
    return [...this.#holds.values()];
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

  /** Those who watch one of these cells, or all. */
  cells(of?: ReadonlySet<string>): readonly WaitingCall<"watchCell">[] {
    const all = [...this.#cells.values()];
    return of === undefined ? all : all.filter(({ request }) => of.has(request.name));
  }

  calls(): readonly number[] {
    return [...this.#claims.keys(), ...this.#holds.keys(), ...this.#outcomes.keys(), ...this.#cells.keys()];
  }

  forget(call: number): void {
    this.#claims.delete(call);
    this.#holds.delete(call);
    this.#outcomes.delete(call);
    this.#cells.delete(call);
  }

  /** A hold that waits, before it is let go: it may have left a mark. */
  hold(call: number): Requests["hold"] | undefined {
    return this.#holds.get(call)?.request;
  }

  /** The caller gave up: it is answered with nothing, unless it was answered already. */
  dismiss(call: number): readonly Reply[] {
    if (this.#claims.delete(call)) return [{ call, value: NOTHING_GRANTED }];
    const waited = this.#holds.delete(call) || this.#outcomes.delete(call) || this.#cells.delete(call);
    return waited ? [{ call, value: undefined }] : [];
  }
}

const NOTHING_GRANTED = { wall: 0, monotonic: 0, levels: [], grants: [] } as const;
