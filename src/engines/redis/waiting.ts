import type { Instant } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import type { Operation } from "./call.ts";
import type { Desk } from "./desk.ts";

/** What a call gets that has to go on waiting. */
export const NOT_YET: unique symbol = Symbol("not yet");

/** What tells the calls of one kind from others. */
export interface Kind<R, T> {
  readonly what: string;
  /** @param waits it can be answered later; otherwise it is only tried */
  readonly write: (request: R, waits: boolean) => readonly string[];
  readonly read: (result: unknown, request: R, since: Instant) => T | typeof NOT_YET;
  /** What is answered to one that was given up. */
  readonly nothing: T;
  /** It goes along with whatever is sent. */
  readonly isCompanion?: boolean;
  /** Nothing can be lost with an answer that comes too late. */
  readonly looks?: boolean;
  /** It asks again when nobody knows what became of it. */
  readonly repeats?: boolean;
  /** What the server is told when it was given up. */
  readonly leave?: (request: R) => Parameters<Desk["ask"]>;
}

interface Waiter<R, T> {
  readonly request: R;
  readonly answer: (result: T) => void;
  readonly fail: (error: unknown) => void;
  /** It is with the server. */
  isAsked: boolean;
  /** It was told to look while it was with the server, which may not have known of it yet. */
  again: boolean;
}

/** The calls of one kind that wait on a queue, first come first served: each is with the server, or here until it is told to look. */
export class Waiting<R extends { readonly signal: AbortSignal }, T> {
  readonly #kind: Kind<R, T>;
  readonly #desk: () => Desk;
  readonly #waiters = new Set<Waiter<R, T>>();
  #isClosed = false;

  constructor(kind: Kind<R, T>, desk: () => Desk) {
    this.#kind = kind;
    this.#desk = desk;
  }

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
      const giveUp = (): void => this.#giveUp(waiter);
      request.signal.addEventListener("abort", giveUp);
      this.#waiters.add(waiter);
      this.#ask(waiter);
    });
  }

  /** Those whom it concerns ask again. */
  look(concerns: (request: R) => boolean = () => true): void {
    for (const waiter of this.#waiters) {
      if (!concerns(waiter.request)) continue;
      if (waiter.isAsked) waiter.again = true;
      else this.#ask(waiter);
    }
  }

  /** Those that wait here, to go along with a call. */
  take(): readonly Operation[] {
    return this.#idle().map((waiter) => this.#operation(waiter));
  }

  /** Their queue was deleted. Those that are with the server have an answer of their own. */
  fail(error: Error): void {
    for (const waiter of this.#idle()) waiter.fail(error);
  }

  /** What is with the server is still waited for. */
  close(): void {
    this.#isClosed = true;
    for (const waiter of this.#idle()) this.#giveUp(waiter);
  }

  #idle(): readonly Waiter<R, T>[] {
    return [...this.#waiters].filter(({ isAsked }) => !isAsked);
  }

  #ask(waiter: Waiter<R, T>): void {
    if (this.#kind.isCompanion === true) this.#desk().look();
    else this.#desk().send(this.#operation(waiter));
  }

  #operation(waiter: Waiter<R, T>): Operation {
    const { what, write, read, nothing, repeats = false } = this.#kind;
    const { request } = waiter;
    // A signal that has fired before makes it a try.
    const waits = !this.#isOver(waiter);
    waiter.isAsked = true;
    waiter.again = false;
    return {
      what,
      args: write(request, waits),
      answer: (result, { since }) => {
        const found = read(result, request, since);
        waiter.isAsked = false;
        if (found !== NOT_YET) waiter.answer(found);
        else if (!waits) waiter.answer(nothing);
        else if (this.#isOver(waiter)) this.#giveUp(waiter);
        else if (waiter.again) this.#ask(waiter);
      },
      fail: (error) => {
        waiter.isAsked = false;
        if (repeats && this.#isOver(waiter)) waiter.answer(nothing);
        // What it may have got is lost with the reply. It still wants something.
        else if (repeats && error instanceof OutcomeUnknown) this.#ask(waiter);
        else waiter.fail(error);
      },
    };
  }

  /** Its signal fired, or the handle closes. What is with the server may get something yet, which must not be lost. */
  #giveUp(waiter: Waiter<R, T>): void {
    const { looks = false, nothing, leave } = this.#kind;
    if (waiter.isAsked && !looks) return;
    waiter.answer(nothing);
    if (leave !== undefined)
      this.#desk()
        .ask(...leave(waiter.request))
        .catch(() => undefined);
  }

  #isOver({ request: { signal } }: Waiter<R, T>): boolean {
    return signal.aborted || this.#isClosed;
  }
}
