/**
 * Asks consumers for messages. A quick pull takes what is there now; a standing pull waits at the server, and while it does
 * the consumer is known to be empty. Statuses end here: whoever pulls sees messages, or that there are none.
 *
 * A server has no word for "I do not want it any more". It passes over pulls whose reply subject nobody listens to, so the standing
 * pulls have a subscription of their own, which ends when they are withdrawn. What was sent before the server knew of that
 * still arrives. Of a cluster it may also be lost on its way from another server; then it comes again a second later.
 */
import { type Clock, pause, type Timer } from "../../domain/clock.ts";
import { lastToken } from "./subjects.ts";
import type { Delivery, Subscription, Wire } from "./wire.ts";

/** A pull that nobody withdraws, because its process stands still, ends by itself after this. */
const STANDING_MS = 30_000;
/** The server says so often that it still thinks of a standing pull. One that was killed with its leader is asked anew when two are missed. */
const HEARTBEAT_MS = 2_000;
/** A pull for somebody who gives up soon ends a tenth of that time before, at most this: its last message must still find him there. */
const EARLY_MS = 50;
const SHORTEST_MS = 1;
/** An answer takes milliseconds. A server that has just started again may lose the question. */
const QUICK_MS = 1_000;
/** Nobody serves the consumer for the moment: the first pause, and the longest, because each is twice the one before. Work waits for as long. */
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 250;
/** One that is made anew is asked at once; but not one that is deleted again and again. */
const MOST_AT_ONCE = 3;

export interface Pulled {
  /** Its name. */
  readonly consumer: string;
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply: string;
  readonly sequence: number;
  /** Of the message, by the server's clock. */
  readonly at: number;
  /** Messages that the consumer has beyond this one. */
  readonly left: number;
  readonly deliveries: number;
}

/** What a quick pull brought. */
export interface Found {
  readonly found: number;
  readonly newest: Pulled | undefined;
}

interface Quick {
  readonly consumer: number;
  readonly want: number;
  readonly resolve: (found: Found) => void;
  readonly timer: Timer;
  found: number;
  newest: Pulled | undefined;
}

interface Standing {
  readonly consumer: number;
  left: number;
  /** The server says now and then that it still thinks of it. */
  readonly hasHeartbeat: boolean;
  /** The server would have been heard by then, by the monotonic clock. */
  silentAt: number;
}

/** Waiting pulls of one process on a few consumers, by number. */
export class Pulls {
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #inbox: string;
  readonly #subjects: readonly string[];
  readonly #names: readonly string[];
  readonly #arrive: (consumer: number, pulled: Pulled) => void;
  readonly #ended: (consumer: number) => void;
  readonly #refused: () => Promise<boolean>;
  readonly #quickSubscription: Subscription;
  /** Of all standing pulls; undefined while there are none. */
  #standingSubscription: Subscription | undefined;
  /** How often standing pulls were withdrawn: each time their replies go to another subject. */
  #withdrawals = 0;
  readonly #quick = new Map<string, Quick>();
  /** Per consumer, in the order in which they were asked. */
  readonly #quickOf = new Map<number, string[]>();
  readonly #standing = new Map<string, Standing>();
  readonly #standingOf = new Map<number, string>();
  /** Per consumer: pulls that were refused, one after the other. */
  readonly #refusals = new Map<number, number>();
  #count = 0;
  #timer: Timer | undefined;
  #closed = false;

  /**
   * @param subjects where each consumer is asked for its next messages; the last token is its name
   * @param arrive what a pull brought
   * @param ended a standing pull is over
   * @param refused a consumer is gone, or nobody serves it for the moment: resolves with true when it was made anew, by whomever
   */
  constructor(parts: {
    readonly wire: Wire;
    readonly clock: Clock;
    readonly inbox: string;
    readonly subjects: readonly string[];
    readonly arrive: (consumer: number, pulled: Pulled) => void;
    readonly ended: (consumer: number) => void;
    readonly refused: () => Promise<boolean>;
  }) {
    this.#wire = parts.wire;
    this.#clock = parts.clock;
    this.#inbox = parts.inbox;
    this.#subjects = parts.subjects;
    this.#names = parts.subjects.map((subject) => subject.slice(subject.lastIndexOf(".") + 1));
    this.#arrive = parts.arrive;
    this.#ended = parts.ended;
    this.#refused = parts.refused;
    this.#quickSubscription = parts.wire.subscribe(`${parts.inbox}.q.*`, (delivery) => this.#receiveQuick(delivery));
    parts.wire.watch((up) => {
      if (!up) this.#forget();
    });
  }

  isStanding(consumer: number): boolean {
    return this.#standingOf.has(consumer);
  }

  /** Whatever becomes ready there comes at once: a pull stands, and the server has not refused it. */
  isServed(consumer: number): boolean {
    return this.#standingOf.has(consumer) && !this.#refusals.has(consumer);
  }

  /**
   * What is there now, up to so many, arrives. Messages say which consumer they come from, not which of its quick pulls they answer: the server answers in the
   * order in which it was asked, so they are for the first that has not got all. That matters for how many came only; if one was lost, the next ask brings the rest.
   */
  quick(consumer: number, want: number): Promise<Found> {
    if (this.#closed) return Promise.resolve({ found: 0, newest: undefined });
    return new Promise((resolve) => {
      const token = this.#next();
      const timer = this.#clock.setTimer(QUICK_MS, () => this.#finish(token));
      this.#quick.set(token, { consumer, want, resolve, timer, found: 0, newest: undefined });
      const others = this.#quickOf.get(consumer);
      if (others === undefined) this.#quickOf.set(consumer, [token]);
      else others.push(token);
      this.#ask(consumer, `${this.#inbox}.q.${token}`, { batch: want, no_wait: true });
    });
  }

  /** @param waitMs whoever wants something waits no longer than this */
  stand(consumer: number, batch: number, waitMs: number = Number.POSITIVE_INFINITY): void {
    if (this.#closed || this.#standingOf.has(consumer)) return;
    const token = this.#next();
    const expiresMs = Math.min(
      STANDING_MS,
      Math.max(SHORTEST_MS, Math.floor(waitMs - Math.min(EARLY_MS, waitMs / 10))),
    );
    // The server refuses a pull that would hear of it less than twice.
    const hasHeartbeat = expiresMs >= HEARTBEAT_MS * 2;
    const silentMs = hasHeartbeat ? HEARTBEAT_MS * 2 : expiresMs + QUICK_MS;
    this.#standing.set(token, { consumer, left: batch, hasHeartbeat, silentAt: this.#clock.monotonic() + silentMs });
    this.#standingOf.set(consumer, token);
    const period = this.#withdrawals;
    const inbox = `${this.#inbox}.${period}`;
    this.#standingSubscription ??= this.#wire.subscribe(`${inbox}.*`, (delivery) =>
      this.#receiveStanding(delivery, period),
    );
    const heartbeat = hasHeartbeat ? { idle_heartbeat: HEARTBEAT_MS * 1e6 } : {};
    this.#ask(consumer, `${inbox}.${token}`, { batch, expires: expiresMs * 1e6, ...heartbeat });
    this.#planCheck();
  }

  /** Nobody wants anything any more: the server sends nothing more to what stands there. What is on its way still arrives. */
  withdraw(): void {
    const subscription = this.#standingSubscription;
    if (subscription === undefined) return;
    this.#standingSubscription = undefined;
    this.#withdrawals += 1;
    this.forgetStanding();
    subscription.drain();
  }

  /** Its consumer has a new leader, who knows nothing of what was asked of the one before. */
  askAnew(name: string): void {
    const consumer = this.#names.indexOf(name);
    this.#refusals.delete(consumer);
    for (const quick of this.#quickOf.get(consumer)?.slice() ?? []) this.#finish(quick);
    const token = this.#standingOf.get(consumer) ?? "";
    const standing = this.#standing.get(token);
    if (standing === undefined) return;
    this.#drop(token, standing);
    if (!this.#closed) this.#ended(consumer);
  }

  /** Standing pulls that a server has may be asleep: whoever wants something asks anew. */
  forgetStanding(): void {
    this.#standing.clear();
    this.#standingOf.clear();
  }

  close(): void {
    this.#closed = true;
    this.#quickSubscription.unsubscribe();
    this.#standingSubscription?.unsubscribe();
    this.#timer?.cancel();
    for (const token of this.#quick.keys()) this.#finish(token);
    this.forgetStanding();
  }

  #next(): string {
    this.#count += 1;
    return this.#count.toString(36);
  }

  #ask(consumer: number, reply: string, request: object): void {
    const subject = this.#subjects[consumer];
    if (subject === undefined) return;
    try {
      this.#wire.publish(subject, JSON.stringify(request), { reply });
    } catch {
      // The connection is closed: no pull is ever answered again, and every other call says so.
    }
  }

  #receiveQuick(delivery: Delivery): void {
    if (delivery.status !== 0) {
      this.#finish(lastToken(delivery.subject));
      return;
    }
    const pulled = readPulled(delivery);
    const consumer = this.#names.indexOf(pulled.consumer);
    const first = this.#quickOf.get(consumer)?.[0] ?? "";
    const quick = this.#quick.get(first);
    if (quick !== undefined) {
      quick.found += 1;
      quick.newest = pulled;
    }
    this.#arrive(consumer, pulled);
    if (quick !== undefined && (quick.found >= quick.want || pulled.left === 0)) this.#finish(first);
  }

  #receiveStanding(delivery: Delivery, period: number): void {
    if (delivery.status !== 0) {
      const token = lastToken(delivery.subject);
      const standing = this.#standing.get(token);
      if (standing !== undefined) this.#receiveStatus(delivery.status, token, standing);
      return;
    }
    const pulled = readPulled(delivery);
    const consumer = this.#names.indexOf(pulled.consumer);
    // It was on its way to a pull that was withdrawn since: the one that stands there now has its message yet to come.
    const token = period === this.#withdrawals ? (this.#standingOf.get(consumer) ?? "") : "";
    const standing = this.#standing.get(token);
    if (standing !== undefined) {
      this.#refusals.delete(consumer);
      standing.left -= 1;
      this.#hear(standing);
      if (standing.left <= 0) this.#drop(token, standing);
    }
    this.#arrive(consumer, pulled);
  }

  #receiveStatus(status: number, token: string, standing: Standing): void {
    const { consumer } = standing;
    if (status === 100) {
      this.#refusals.delete(consumer);
      this.#hear(standing);
      return;
    }
    // 404 and 408: nothing came. 409: the consumer moved, was deleted, or has too many pulls. 503: nobody is there.
    if (status !== 404 && status !== 408) {
      void this.#askWhy(consumer, token, standing);
      return;
    }
    this.#refusals.delete(consumer);
    this.#drop(token, standing);
    this.#ended(consumer);
  }

  #hear(standing: Standing): void {
    if (standing.hasHeartbeat) standing.silentAt = this.#clock.monotonic() + HEARTBEAT_MS * 2;
  }

  /** Until the consumer is known to be another one, but no longer than a while, nobody asks it again. */
  async #askWhy(consumer: number, token: string, standing: Standing): Promise<void> {
    const before = this.#refusals.get(consumer) ?? 0;
    this.#refusals.set(consumer, before + 1);
    const rest = pause(this.#clock, Math.min(LONGEST_PAUSE_MS, PAUSE_MS * 2 ** before)).then(() => false);
    const isAnew = await Promise.race([this.#refused().catch(() => false), rest]);
    if (!isAnew || before >= MOST_AT_ONCE) await rest;
    if (this.#standing.get(token) !== standing) return;
    this.#drop(token, standing);
    if (!this.#closed) this.#ended(consumer);
  }

  #finish(token: string): void {
    const quick = this.#quick.get(token);
    if (quick === undefined) return;
    this.#quick.delete(token);
    const others = this.#quickOf.get(quick.consumer) ?? [];
    others.splice(others.indexOf(token), 1);
    quick.timer.cancel();
    quick.resolve(quick);
  }

  #drop(token: string, { consumer }: Standing): void {
    this.#standing.delete(token);
    if (this.#standingOf.get(consumer) === token) this.#standingOf.delete(consumer);
  }

  /** The connection is gone, and with it every pull. */
  #forget(): void {
    for (const token of this.#quick.keys()) this.#finish(token);
    const consumers = [...this.#standingOf.keys()];
    this.forgetStanding();
    for (const consumer of consumers) this.#ended(consumer);
  }

  #planCheck(): void {
    if (this.#timer !== undefined || this.#standing.size === 0 || this.#closed) return;
    let at = Number.POSITIVE_INFINITY;
    for (const { silentAt } of this.#standing.values()) at = Math.min(at, silentAt);
    this.#timer = this.#clock.setTimer(at - this.#clock.monotonic() + 1, () => this.#checkHeard());
  }

  #checkHeard(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (const [token, standing] of this.#standing) {
      if (now < standing.silentAt) continue;
      this.#drop(token, standing);
      this.#ended(standing.consumer);
    }
    this.#planCheck();
  }
}

/** `$JS.ACK.stream.consumer.delivered.sequence.number.time.left`, with domain and account in front on newer ones. */
function readPulled({ subject, data, reply }: Delivery): Pulled {
  const tokens = reply.split(".");
  const from = tokens.length >= 11 ? 6 : 4;
  return {
    consumer: tokens[from - 1] ?? "",
    subject,
    data,
    reply,
    deliveries: Number(tokens[from]),
    sequence: Number(tokens[from + 1]),
    at: Number(tokens[from + 3]) / 1e6,
    left: Number(tokens[from + 4]),
  };
}
