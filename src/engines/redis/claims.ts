import { OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import type { Operation } from "./call.ts";
import { MOST_GRANTS } from "./desk.ts";
import { claimArguments } from "./operations.ts";
import { readGrants } from "./replies.ts";

interface WaitingClaim {
  readonly request: ClaimRequest;
  readonly answer: (grants: readonly Grant[]) => void;
  readonly fail: (error: unknown) => void;
  isAsked: boolean;
  /** It was told of work while it was with the server, which may not have known of it yet. */
  again: boolean;
}

/**
 * The claims of this process on one queue, first come first served. A claim is with the server or waits here; it is answered when it got
 * something, or was given up while it waited here: what it may get there is not lost.
 */
export class Claims {
  readonly #waiting = new Set<WaitingClaim>();
  readonly #levels: readonly string[];
  readonly #look: () => void;
  readonly #granted: (request: ClaimRequest, grants: readonly Grant[]) => void;

  constructor(
    levels: readonly string[],
    look: () => void,
    granted: (request: ClaimRequest, grants: readonly Grant[]) => void,
  ) {
    this.#levels = levels;
    this.#look = look;
    this.#granted = granted;
  }

  get size(): number {
    return this.#waiting.size;
  }

  get anyWaits(): boolean {
    return this.#waiting.size > 0;
  }

  claim(request: ClaimRequest): Promise<readonly Grant[]> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(waiting);
        request.signal.removeEventListener("abort", giveUp);
      };
      const waiting: WaitingClaim = {
        request,
        isAsked: false,
        again: false,
        answer: (grants) => {
          leave();
          resolve(grants);
        },
        fail: (error) => {
          leave();
          reject(isError(error) ? error : new Error(String(error)));
        },
      };
      const giveUp = (): void => {
        if (!waiting.isAsked) waiting.answer([]);
      };
      request.signal.addEventListener("abort", giveUp);
      this.#waiting.add(waiting);
      this.#look();
    });
  }

  /** There is work: the tidings may have overtaken the answer to a claim that came too early for it. */
  told(): void {
    if (this.#waiting.size === 0) return;
    for (const waiting of this.#waiting) waiting.again = waiting.isAsked;
    this.#look();
  }

  /** Those that wait here, to go along with a call. */
  take(): readonly Operation[] {
    const operations: Operation[] = [];
    for (const waiting of this.#waiting) {
      if (waiting.isAsked) continue;
      waiting.isAsked = true;
      waiting.again = false;
      operations.push(this.#operation(waiting));
    }
    return operations;
  }

  /** Their queue was deleted. Those that are with the server have an answer of their own. */
  fail(error: Error): void {
    for (const waiting of this.#waiting) if (!waiting.isAsked) waiting.fail(error);
  }

  /** The handle closes: what is with the server is still waited for. */
  giveUp(): void {
    for (const waiting of this.#waiting) {
      if (!waiting.isAsked) waiting.answer([]);
    }
    this.#isClosed = true;
  }

  #isClosed = false;

  #operation(waiting: WaitingClaim): Operation {
    const { queue, max, signal } = waiting.request;
    return {
      what: "a claim",
      // More than a call should carry is taken by the claims after this one.
      args: claimArguments({ ...waiting.request, max: Math.min(max, MOST_GRANTS) }),
      entries: max,
      grows: false,
      answer: (result, { since }) => {
        const grants = readGrants(result, queue, this.#levels, since);
        waiting.isAsked = false;
        if (grants.length > 0) this.#granted(waiting.request, grants);
        if (grants.length > 0 || signal.aborted || this.#isClosed) waiting.answer(grants);
        else if (waiting.again) this.#look();
      },
      fail: (error) => {
        waiting.isAsked = false;
        if (signal.aborted || this.#isClosed) return waiting.answer([]);
        // What it may have got is lost with the reply, and comes back when its lease runs out. It still wants something.
        if (error instanceof OutcomeUnknown) return this.#look();
        waiting.fail(error);
      },
    };
  }
}
