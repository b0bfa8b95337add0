import { isError } from "../../domain/realms.ts";
import type { DeclaredQueue } from "./queues.ts";

/** Somebody who waits for something of a queue. */
export interface Waiter<R, T> {
  readonly queue: DeclaredQueue;
  readonly request: R;
  readonly answer: (result: T) => void;
  readonly fail: (error: unknown) => void;
  /** It is with the server: whatever comes of that is its answer. */
  isAsked: boolean;
  /** Something may have changed for it. */
  look: boolean;
}

/** The calls of one kind that wait, first come first served, until they are answered or their signal fires. */
export class Waiting<R extends { readonly signal: AbortSignal }, T> {
  readonly #waiters = new Set<Waiter<R, T>>();
  readonly #nothing: T;
  #isClosed = false;

  /** @param nothing the answer to one whose signal fires, or whose handle closes, while it is not with the server */
  constructor(nothing: T) {
    this.#nothing = nothing;
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** A worker has one signal for all its claims, and it must not keep them. */
  wait(queue: DeclaredQueue, request: R): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const leave = (): void => {
      this.#waiters.delete(waiter);
      request.signal.removeEventListener("abort", giveUp);
    };
    const waiter: Waiter<R, T> = {
      queue,
      request,
      isAsked: false,
      look: true,
      answer: (result) => {
        leave();
        resolve(result);
      },
      fail: (error) => {
        leave();
        reject(isError(error) ? error : new Error(String(error)));
      },
    };
    const giveUp = (): void => {
      if (!waiter.isAsked) waiter.answer(this.#nothing);
    };
    request.signal.addEventListener("abort", giveUp, { once: true });
    this.#waiters.add(waiter);
    this.release(waiter);
    return promise;
  }

  /** It is not with the server any more, and waits on, if it was not answered: its signal may have fired meanwhile. */
  release(waiter: Waiter<R, T>): void {
    waiter.isAsked = false;
    if (this.#isOver(waiter)) waiter.answer(this.#nothing);
  }

  all(): readonly Waiter<R, T>[] {
    return [...this.#waiters];
  }

  /** The first that is not with the server. */
  get first(): Waiter<R, T> | undefined {
    for (const waiter of this.#waiters) if (!waiter.isAsked) return waiter;
    return undefined;
  }

  /** Those that are not with the server. */
  idle(): readonly Waiter<R, T>[] {
    return this.all().filter(({ isAsked }) => !isAsked);
  }

  /** Something may have changed in the queue, or in any. */
  lookAt(queue?: number): void {
    for (const waiter of this.#waiters) if (queue === undefined || waiter.queue.id === queue) waiter.look = true;
  }

  get hasWork(): boolean {
    for (const { look } of this.#waiters) if (look) return true;
    return false;
  }

  close(): void {
    this.#isClosed = true;
    for (const { answer } of this.idle()) answer(this.#nothing);
  }

  /** Nobody wants an answer any more. */
  #isOver({ request: { signal } }: Waiter<R, T>): boolean {
    return signal.aborted || this.#isClosed;
  }
}
