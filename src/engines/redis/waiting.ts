import { isError } from "../../domain/realms.ts";

export interface Waiter<R, T> {
  readonly request: R;
  readonly answer: (result: T) => void;
  readonly fail: (error: unknown) => void;
  /** It is with the server. */
  isAsked: boolean;
  /** It was told to look while it was with the server, which may not have known of it yet. */
  again: boolean;
}

/** The calls of one kind that wait on a queue, first come first served: each is with the server, or here until it is told to look. */
export abstract class Waiting<R extends { readonly signal: AbortSignal }, T> {
  readonly #waiters = new Set<Waiter<R, T>>();
  #isClosed = false;

  /** Asks the server. */
  protected abstract ask(waiter: Waiter<R, T>): void;
  /** Its signal fired, or the handle closes. */
  protected abstract giveUp(waiter: Waiter<R, T>): void;

  get size(): number {
    return this.#waiters.size;
  }

  wait(request: R): Promise<T> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters.delete(waiter);
        request.signal.removeEventListener("abort", giveUp);
      };
      const waiter: Waiter<R, T> = {
        request,
        isAsked: false,
        again: false,
        answer: (result) => {
          leave();
          resolve(result);
        },
        fail: (error) => {
          leave();
          reject(isError(error) ? error : new Error(String(error)));
        },
      };
      const giveUp = (): void => this.giveUp(waiter);
      request.signal.addEventListener("abort", giveUp);
      this.#waiters.add(waiter);
      this.ask(waiter);
    });
  }

  /** Those whom it concerns ask again. */
  look(concerns: (request: R) => boolean = () => true): void {
    for (const waiter of this.#waiters) {
      if (!concerns(waiter.request)) continue;
      if (waiter.isAsked) waiter.again = true;
      else this.ask(waiter);
    }
  }

  /** Their queue was deleted. Those that are with the server have an answer of their own. */
  fail(error: Error): void {
    for (const waiter of this.idle()) waiter.fail(error);
  }

  /** What is with the server is still waited for. */
  close(): void {
    this.#isClosed = true;
    for (const waiter of this.idle()) this.giveUp(waiter);
  }

  /** Those that are not with the server. */
  protected idle(): readonly Waiter<R, T>[] {
    return [...this.#waiters].filter(({ isAsked }) => !isAsked);
  }

  protected asking(waiter: Waiter<R, T>): void {
    waiter.isAsked = true;
    waiter.again = false;
  }

  protected isOver({ request: { signal } }: Waiter<R, T>): boolean {
    return signal.aborted || this.#isClosed;
  }
}
