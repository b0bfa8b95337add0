/**
 * Requests and replies over one reply subscription and a map, because a subscription, a timer and a promise chain per
 * request cost three times the request. Time runs out in two generations: one timer for all.
 */
import type { Clock, Timer } from "../../domain/clock.ts";
import { BatonError, Closed, OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import { PassingMap } from "../../domain/passing.ts";
import { asError } from "./as-error.ts";
import type { Delivery, Denied, Subscription, Wire } from "./wire.ts";

/** No reply came: what was asked for may or may not have happened. */
export class Lost extends Error {
  constructor(subject: string) {
    super(`No reply came to ${subject}.`);
    this.name = "Lost";
  }
}

/** Nobody serves what was asked: surely nothing was done. Its stream may be gone, or without a leader for the moment. */
export class Unserved extends Lost {
  readonly subject: string;

  constructor(subject: string) {
    super(subject);
    this.name = "Unserved";
    this.subject = subject;
  }
}

/** Whenever it was asked for, nobody served it, and nobody is about to: surely nothing was done. */
export class SwitchedOff extends Lost {
  constructor(subject: string) {
    super(subject);
    this.name = "SwitchedOff";
  }
}

/** The same, for those who called: of a submission or a declaration that nothing of it was done. */
export class NotServed extends BatonError {
  constructor(cause: SwitchedOff) {
    super(
      "STORE_UNAVAILABLE",
      "The NATS server says that nobody serves JetStream: it is switched off, there or for this account, or a cluster has had no leader for long. " +
        "Nothing was written. What was accepted before is safe as long as the server's folder is; once JetStream is there again, work goes on by itself.",
      { cause },
    );
  }
}

/** Part of a submission was written before this: what became of it is not known. */
export function partlyWritten(cause: unknown): never {
  throw cause instanceof SwitchedOff ? new OutcomeUnknown("a submission", { cause }) : asError(cause);
}

/** The account may not do what Baton needs. */
export class Forbidden extends BatonError {
  constructor(operation: "publish" | "subscription", subject: string) {
    const what = operation === "publish" ? "publish to" : "subscribe to";
    super(
      "STORE_UNAVAILABLE",
      `The NATS server does not permit this account to ${what} ${subject}. Nothing was done. ` +
        "docs/engines/nats.md lists the permissions that Baton needs.",
    );
  }
}

/** Replies are given up after one to two of these: what a server that is just starting again loses must not outlast a lease. */
const GENERATION_MS = 2_000;
/** More would only stand in the server's queues: its API drops all that wait when too many do. */
const MOST_IN_FLIGHT = 2_048;
const NOTHING: readonly Message[] = [];

/** A message that nobody answers. */
export interface Message {
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly headers: string | undefined;
}

interface Waiting {
  readonly subject: string;
  readonly resolve: (delivery: Delivery) => void;
  readonly reject: (error: Error) => void;
  /** Keeps listening until this says that it was the last. */
  readonly more: ((delivery: Delivery) => boolean) | undefined;
  /** What goes out right before it. */
  readonly before?: readonly Message[];
}

interface Unsent {
  readonly subject: string;
  readonly send: () => void;
  readonly reject: (error: Error) => void;
}

export class Requests {
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #unsent: Unsent[] = [];
  #young = new PassingMap<string, Waiting>();
  #old = new PassingMap<string, Waiting>();
  #count = 0;
  #timer: Timer | undefined;
  #up = true;
  #away: Timer | undefined;
  #closed = false;
  #onQuiet: PromiseWithResolvers<void> | undefined;
  #forbidden: Forbidden | undefined;

  constructor(wire: Wire, clock: Clock, inbox: string) {
    this.#wire = wire;
    this.#clock = clock;
    this.#inbox = `${inbox}.r.`;
    this.#subscription = wire.subscribe(`${this.#inbox}*`, (delivery) => this.#receive(delivery));
    wire.deny?.((denied) => this.#refuse(denied));
    wire.watch((up) => {
      this.#up = up;
      this.#away?.cancel();
      // What was under way may have been lost with the connection; nobody else will say so.
      if (up) this.#sendWaiting();
      else this.#lose([...this.#old.values(), ...this.#young.values()]);
      // What comes meanwhile waits for the connection, but not for ever.
      this.#away = up ? undefined : clock.setTimer(GENERATION_MS * 2, () => this.#loseUnsent());
    });
  }

  /** A subject that the server does not let this connection use: there is no use in waiting for replies. */
  #refuse({ operation, subject }: Denied): void {
    const error = new Forbidden(operation, subject);
    if (operation === "subscription" && subject.startsWith(this.#inbox)) this.#forbidden = error;
    for (const waiting of [this.#young, this.#old]) {
      for (const [token, { subject: asked, reject }] of waiting.entries()) {
        if (asked !== subject && this.#forbidden === undefined) continue;
        waiting.delete(token);
        reject(error);
      }
    }
  }

  send(subject: string, data: Uint8Array | string, headers?: string): Promise<Delivery> {
    return new Promise((resolve, reject) =>
      this.#begin(subject, data, headers, { subject, resolve, reject, more: undefined }),
    );
  }

  /** The same without a promise, for those who send thousands. */
  sendThen(
    subject: string,
    data: Uint8Array | string,
    headers: string | undefined,
    resolve: (delivery: Delivery) => void,
    reject: (error: Error) => void,
  ): void {
    this.#begin(subject, data, headers, { subject, resolve, reject, more: undefined });
  }

  /** Several messages one behind the other, with one reply for all, to the last. */
  sendAll(
    before: readonly Message[],
    { subject, data, headers }: Message,
    resolve: (delivery: Delivery) => void,
    reject: (error: Error) => void,
  ): void {
    this.#begin(subject, data, headers, { subject, resolve, reject, more: undefined, before });
  }

  /** Several replies to one request: all until the one that ends them, which resolves. */
  collect(subject: string, data: Uint8Array | string, more: (delivery: Delivery) => boolean): Promise<Delivery> {
    return new Promise((resolve, reject) => this.#begin(subject, data, undefined, { subject, resolve, reject, more }));
  }

  /** Whoever could have answered these is gone. */
  giveUp(isMeant: (subject: string) => boolean): void {
    for (const waiting of [this.#young, this.#old]) {
      for (const [token, { subject, reject }] of waiting.entries()) {
        if (!isMeant(subject)) continue;
        waiting.delete(token);
        reject(new Lost(subject));
      }
    }
    for (let free = MOST_IN_FLIGHT - this.#young.size - this.#old.size; this.#up && free > 0; free -= 1)
      this.#unsent.shift()?.send();
  }

  /** Resolves when every request is answered, or given up. */
  quiet(): Promise<void> {
    if (this.#areAllAnswered) return Promise.resolve();
    this.#onQuiet ??= Promise.withResolvers<void>();
    return this.#onQuiet.promise;
  }

  get #areAllAnswered(): boolean {
    return this.#young.size + this.#old.size + this.#unsent.length === 0;
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  close(): void {
    this.#closed = true;
    this.#subscription.unsubscribe();
    this.#timer?.cancel();
    this.#away?.cancel();
    this.#lose([...this.#old.values(), ...this.#young.values()]);
    for (const { reject } of this.#unsent.splice(0)) reject(new Closed());
  }

  #begin(subject: string, data: Uint8Array | string, headers: string | undefined, waiting: Waiting): void {
    if (this.#closed || this.#forbidden !== undefined) {
      waiting.reject(this.#forbidden ?? new Closed());
      return;
    }
    if (this.#up && this.#young.size + this.#old.size < MOST_IN_FLIGHT) {
      this.#sendNow(subject, data, headers, waiting);
      return;
    }
    const send = (): void => this.#sendNow(subject, data, headers, waiting);
    this.#unsent.push({ subject, send, reject: waiting.reject });
  }

  #sendNow(subject: string, data: Uint8Array | string, headers: string | undefined, waiting: Waiting): void {
    this.#count += 1;
    const token = this.#count.toString(36);
    this.#young.set(token, waiting);
    this.#timer ??= this.#clock.setTimer(GENERATION_MS, () => this.#grow());
    const reply = this.#inbox + token;
    try {
      for (const message of waiting.before ?? NOTHING)
        this.#wire.publish(
          message.subject,
          message.data,
          message.headers === undefined ? {} : { headers: message.headers },
        );
      this.#wire.publish(subject, data, headers === undefined ? { reply } : { reply, headers });
    } catch (error) {
      this.#young.delete(token);
      waiting.reject(isError(error) ? error : new Error(String(error)));
    }
  }

  #receive(delivery: Delivery): void {
    const token = delivery.subject.slice(this.#inbox.length);
    const waiting = this.#young.get(token) ?? this.#old.get(token);
    if (waiting === undefined) return;
    if (waiting.more?.(delivery) === true) return;
    if (!this.#young.delete(token)) this.#old.delete(token);
    this.#unsent.shift()?.send();
    waiting.resolve(delivery);
    this.#tellQuiet();
  }

  #tellQuiet(): void {
    if (this.#onQuiet === undefined || !this.#areAllAnswered) return;
    this.#onQuiet.resolve();
    this.#onQuiet = undefined;
  }

  #grow(): void {
    const lost = [...this.#old.values()];
    this.#old = this.#young;
    this.#young = new PassingMap();
    this.#timer = this.#old.size > 0 ? this.#clock.setTimer(GENERATION_MS, () => this.#grow()) : undefined;
    for (const { subject, reject } of lost) reject(new Lost(subject));
    for (let free = lost.length; free > 0 && this.#unsent.length > 0; free -= 1) this.#unsent.shift()?.send();
    this.#tellQuiet();
  }

  #lose(lost: readonly Waiting[]): void {
    this.#old.clear();
    this.#young.clear();
    for (const { subject, reject } of lost) reject(new Lost(subject));
    if (this.#up && !this.#closed) this.#sendWaiting();
    this.#tellQuiet();
  }

  #sendWaiting(): void {
    for (const { send } of this.#unsent.splice(0, MOST_IN_FLIGHT)) send();
  }

  #loseUnsent(): void {
    for (const { subject, reject } of this.#unsent.splice(0)) reject(new Lost(subject));
    if (!this.#up && !this.#closed) this.#away = this.#clock.setTimer(GENERATION_MS * 2, () => this.#loseUnsent());
  }
}
