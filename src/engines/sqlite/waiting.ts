import type { Call } from "./messages.ts";

type WaitingOutcome = Call<"outcome"> & { readonly queue: number };
export type WaitingCall = Call<"claim" | "hold" | "watchCell"> | WaitingOutcome;

/** The calls of this process that wait for something to happen, in the order in which they came. */
export class Waiting {
  readonly #calls = new Map<number, WaitingCall>();

  get empty(): boolean {
    return this.#calls.size === 0;
  }

  /** Nobody waits for anything that has to do with queues. */
  get onlyForCells(): boolean {
    return this.all().every(({ kind }) => kind === "watchCell");
  }

  /** Nobody waits for what another process may have written elsewhere than among the ready keys. */
  get onlyForWork(): boolean {
    return this.all().every(({ kind }) => kind === "claim" || kind === "hold");
  }

  add(waiting: WaitingCall): void {
    this.#calls.set(waiting.call, waiting);
  }

  all(): readonly WaitingCall[] {
    return [...this.#calls.values()];
  }

  claims(): readonly Call<"claim">[] {
    return this.all().filter((one) => one.kind === "claim");
  }

  holds(): readonly Call<"hold">[] {
    return this.all().filter((one) => one.kind === "hold");
  }

  /** Those who wait for one of these items, or all. */
  outcomes(of?: readonly { readonly queue: number; readonly id: string }[]): readonly WaitingOutcome[] {
    const all = this.all().filter((one) => one.kind === "outcome");
    if (of === undefined) return all;
    const ended = new Set(of.map(({ queue, id }) => `${queue} ${id}`));
    return all.filter(({ queue, request }) => ended.has(`${queue} ${request.id}`));
  }

  /** Those who watch one of these cells, or all. */
  cells(of?: ReadonlySet<string>): readonly Call<"watchCell">[] {
    const all = this.all().filter((one) => one.kind === "watchCell");
    return of === undefined ? all : all.filter(({ request }) => of.has(request.name));
  }

  forget(call: number): void {
    this.#calls.delete(call);
  }

  /** Whoever gave up, unless it was answered already. */
  take(call: number): WaitingCall | undefined {
    const waiting = this.#calls.get(call);
    this.#calls.delete(call);
    return waiting;
  }
}
