/** A pull consumer: hands each message of its filter to one who waits, again if no acknowledgement comes in time. */
import type { Clock } from "../../src/domain/clock.ts";
import { AckFloor, type Delivered } from "./ack-floor.ts";
import { Alarm } from "./alarm.ts";
import { type ConsumerConfig, filtersOf } from "./consumer-config.ts";
import { nanosToMs, writeNanos, writeTime } from "./formats.ts";
import { writeHeaders } from "./headers.ts";
import type { Message } from "./messages.ts";
import { PendingCount } from "./pending-count.ts";
import { PullRequest, readPull } from "./pull-request.ts";
import type { Stream } from "./stream.ts";
import { includes, matches } from "./subjects.ts";
import { type ConsumerState, WrittenAcks } from "./written-acks.ts";

/** The part of the server that a consumer needs. */
export interface Outlet {
  hasInterest(subject: string): boolean;
  send(inbox: string, message: Sent): void;
}

export interface Sent {
  /** What the receiver sees; its own inbox if not given. */
  readonly subject?: string;
  readonly reply?: string;
  readonly data?: Uint8Array;
  readonly headers?: Uint8Array | undefined;
}

/** What a purge or a rollup did. */
export interface Purged {
  readonly pattern: string;
  readonly removed: readonly Message[];
  /** The consumers count anew. Else a single message is told to those whose filter includes the pattern. */
  readonly recounted: boolean;
}

interface Pending extends Delivered {
  deliveries: number;
  /** By the monotonic clock. */
  dueAt: number;
}

interface Forgettable extends Delivered {
  readonly at: number;
  readonly message: Message;
  readonly deliveries: number;
}

/** Acknowledgements that a crash may undo. */
const REMEMBERED = 256;

export class Consumer {
  readonly name: string;
  readonly createdMs: number;
  config: ConsumerConfig;
  readonly #stream: Stream;
  readonly #clock: Clock;
  readonly #outlet: Outlet;
  readonly #onInactive: () => void;
  readonly #pending = new Map<number, Pending>();
  /** Matching messages that were never delivered, in order. */
  readonly #fresh = new Set<number>();
  readonly #count: PendingCount;
  #again: number[] = [];
  #waiting: PullRequest[] = [];
  #delivered = 0;
  #nextSequence: number;
  readonly #floor: AckFloor;
  readonly #written: WrittenAcks;
  #lastActiveMs: number | undefined;
  #usedAt: number;
  #acknowledged: Forgettable[] = [];
  readonly #redelivery: Alarm;
  readonly #resumption: Alarm;
  readonly #inactivity: Alarm;

  constructor(config: ConsumerConfig, stream: Stream, clock: Clock, outlet: Outlet, onInactive: () => void) {
    this.name = config.name;
    this.config = config;
    this.createdMs = clock.wall();
    this.#stream = stream;
    this.#clock = clock;
    this.#outlet = outlet;
    this.#onInactive = onInactive;
    this.#usedAt = clock.monotonic();
    this.#redelivery = new Alarm(clock, () => this.#queueOverdue());
    this.#resumption = new Alarm(clock, () => this.#deliver());
    this.#inactivity = new Alarm(clock, () => this.#leaveIfUnused());
    this.#nextSequence = this.#startSequence();
    this.#floor = new AckFloor(this.#nextSequence - 1);
    this.#written = new WrittenAcks(this.#nextSequence - 1);
    const wanted = config.deliver_policy === "last_per_subject" ? this.#lastPerSubject() : stream.messages.from(0);
    for (const message of wanted) {
      if (message.sequence >= this.#nextSequence && this.wants(message.subject)) this.#fresh.add(message.sequence);
    }
    this.#count = new PendingCount(this.#fresh.size);
    this.pauseUntil(config.pause_until);
    this.#leaveIfUnused();
  }

  get isPaused(): boolean {
    return this.#pauseLeftMs() > 0;
  }

  /** Whether all that the pattern matches is its own. */
  #hears(pattern: string): boolean {
    const filters = filtersOf(this.config);
    return filters.length === 0 || filters.some((filter) => includes(filter, pattern));
  }

  wants(subject: string): boolean {
    const filters = filtersOf(this.config);
    return filters.length === 0 || filters.some((filter) => matches(filter, subject));
  }

  update(config: ConsumerConfig): void {
    const { pause_until: until } = this.config;
    this.config = until === undefined ? config : { pause_until: until, ...config };
    this.#fresh.clear();
    for (const message of this.#stream.messages.from(this.#nextSequence)) {
      if (this.wants(message.subject)) this.#fresh.add(message.sequence);
    }
    this.#count.recount(this.#fresh.size);
    this.#deliver();
  }

  /** Without a moment, or with one that is over: goes on. */
  pauseUntil(until: string | undefined): void {
    const { pause_until: _, ...rest } = this.config;
    const isSet = until !== undefined && Date.parse(until) > 0;
    this.config = isSet ? { ...rest, pause_until: until } : rest;
    if (this.isPaused) this.#resumption.noLaterThan(this.#clock.monotonic() + this.#pauseLeftMs());
    else this.#deliver();
  }

  pull(data: Uint8Array, inbox: string): void {
    if (inbox === "") return;
    this.#usedAt = this.#clock.monotonic();
    const request = new PullRequest(inbox, readPull(data));
    if (request.heartbeatMs > 0 && request.heartbeatMs * 2 > request.expiresMs) {
      return this.#status(inbox, 400, "Bad Request - heartbeat value too large");
    }
    this.#dropUninterested();
    if (this.#waiting.length >= this.config.max_waiting) return this.#status(inbox, 409, "Exceeded MaxWaiting");
    if (request.noWait && this.#count.value + this.#again.length === 0) return this.#status(inbox, 404, "No Messages");
    this.#waiting.push(request);
    request.start(
      this.#clock,
      () => this.#expire(request),
      () => this.#showLife(request),
    );
    this.#deliver();
  }

  /** Answers whether it is to be confirmed. */
  acknowledge(
    { sequence, place }: { readonly sequence: number } & Delivered,
    data: Uint8Array,
    inbox: string,
  ): boolean {
    this.#usedAt = this.#clock.monotonic();
    const text = Buffer.from(data).toString();
    if (text.startsWith("-NAK")) {
      if (place > this.#floor.consumer) this.#refuse(sequence, text.slice("-NAK".length));
    } else if (text.startsWith("+WPI")) this.#extend(sequence);
    else if (text === "" || text === "+OK" || /^\+(ACK|TERM|NXT)/.test(text)) {
      if (sequence >= this.#nextSequence) return false;
      this.#settle(sequence, place);
      if (text.startsWith("+NXT")) {
        this.pull(data.subarray("+NXT".length), inbox);
        return false;
      }
    }
    return true;
  }

  onStored(message: Message): void {
    if (!this.wants(message.subject)) return;
    this.#fresh.add(message.sequence);
    this.#count.change(1);
    this.#deliver();
  }

  onRemoved({ sequence, subject }: Message): void {
    this.#fresh.delete(sequence);
    if (!this.wants(subject)) return;
    if (sequence >= this.#nextSequence) this.#count.change(-1);
    if (this.#forget(sequence)) this.#deliver();
  }

  /**
   * A purge, or a rollup, of subjects of its own. So does the real one: it forgets that others were refused, and
   * delivers those again only when their time for an acknowledgement is over.
   */
  onPurged({ pattern, removed, recounted }: Purged): void {
    for (const { sequence } of removed) this.#fresh.delete(sequence);
    if (recounted) this.#count.recount(this.#fresh.size);
    const { messages } = this.#stream;
    const isAll = pattern === ">" || filtersOf(this.config).some((filter) => includes(pattern, filter));
    const [only] = removed.length === 1 && !recounted ? removed : [];
    if (only !== undefined && only.sequence >= this.#nextSequence && this.#hears(pattern)) this.#count.change(-1);
    if (!isAll && !this.#hears(pattern)) return;
    const start = isAll
      ? (messages.from(0, pattern)[0]?.sequence ?? messages.lastSequence + 1)
      : messages.firstSequence;
    this.#nextSequence = Math.max(this.#nextSequence, start);
    const isGone = (sequence: number): boolean => !isAll && messages.get(sequence) === undefined;
    for (const sequence of this.#floor.purge(start, this.#pending, isGone)) {
      this.#written.acknowledge(sequence, this.#pending.get(sequence)?.place ?? 0);
      this.#pending.delete(sequence);
    }
    if (this.#pending.size === 0) this.#floor.reset(this.#nextSequence, this.#delivered);
    this.#written.update(this.#state());
    // The real one is told of a single message at once, and acts on it in a thread of its own: later than on the purge.
    if (only !== undefined && this.#hears(pattern)) this.#forget(only.sequence);
    const refused = this.#again;
    this.#again = [];
    for (const sequence of refused) this.#waitOn(sequence);
  }

  /** The server starts again: nobody waits any more, and what was acknowledged since then may be forgotten. */
  onRestart(forgetSince: number): void {
    for (const request of this.#waiting) request.stop();
    this.#waiting = [];
    for (const { at, message, deliveries, place } of this.#acknowledged) {
      if (at <= forgetSince) continue;
      if (this.#stream.config.retention === "workqueue") this.#stream.revive(message);
      if (this.#stream.messages.get(message.sequence) === undefined) continue;
      this.#wait(message.sequence, { deliveries, place }, nanosToMs(this.config.ack_wait));
    }
    this.#acknowledged = [];
    this.#floor.sink(this.#pending);
    this.#written.replace(this.#state());
    this.#count.recount(this.#fresh.size);
  }

  close(): void {
    for (const request of this.#waiting) {
      request.stop();
      if (this.#outlet.hasInterest(request.inbox)) this.#status(request.inbox, 409, "Consumer Deleted");
    }
    this.#waiting = [];
    for (const alarm of [this.#redelivery, this.#resumption, this.#inactivity]) alarm.cancel();
  }

  info(): object {
    this.#dropUninterested();
    const active = this.#lastActiveMs === undefined ? {} : { last_active: writeTime(this.#lastActiveMs) };
    const { isPaused } = this;
    return {
      stream_name: this.#stream.config.name,
      name: this.name,
      created: writeTime(this.createdMs),
      config: this.config,
      delivered: { consumer_seq: this.#delivered, stream_seq: this.#nextSequence - 1, ...active },
      ack_floor: { consumer_seq: this.#written.floor.consumer, stream_seq: this.#written.floor.stream },
      num_ack_pending: this.#pending.size,
      num_redelivered: [...this.#pending.values()].filter(({ deliveries }) => deliveries > 1).length,
      num_waiting: this.#waiting.length,
      num_pending: this.#count.shown(this.#stream.messages, this.#nextSequence),
      ...(isPaused ? { paused: true, pause_remaining: Math.floor(this.#pauseLeftMs() * 1e6) } : {}),
      ts: writeTime(this.#clock.wall()),
    };
  }

  pauseInfo(): object {
    const { isPaused } = this;
    const remaining = isPaused ? { pause_remaining: Math.floor(this.#pauseLeftMs() * 1e6) } : {};
    return { paused: isPaused, pause_until: this.config.pause_until ?? "0001-01-01T00:00:00Z", ...remaining };
  }

  #startSequence(): number {
    const { messages } = this.#stream;
    const first = Math.max(1, messages.firstSequence);
    switch (this.config.deliver_policy) {
      case "new":
        return messages.lastSequence + 1;
      case "last": {
        const filters = filtersOf(this.config);
        const found = (filters.length === 0 ? [">"] : filters).map((filter) => messages.last(filter)?.sequence ?? 0);
        return Math.max(...found) || messages.lastSequence + 1;
      }
      case "by_start_sequence":
        return Math.max(first, this.config.opt_start_seq ?? 1);
      default:
        return first;
    }
  }

  #lastPerSubject(): Message[] {
    const filters = filtersOf(this.config);
    return this.#stream.messages.lastOfEach(filters.length === 0 ? [">"] : filters, Infinity);
  }

  #pauseLeftMs(): number {
    const { pause_until: until } = this.config;
    return until === undefined ? 0 : Date.parse(until) - this.#clock.wall();
  }

  #deliver(): void {
    if (this.isPaused) {
      this.#resumption.noLaterThan(this.#clock.monotonic() + this.#pauseLeftMs());
      return this.#turnAwayHasty();
    }
    for (;;) {
      this.#dropUninterested();
      const [request] = this.#waiting;
      if (request === undefined) return;
      const message = this.#nextMessage();
      if (message === "none") return this.#turnAwayHasty();
      // Those who do not wait for messages do wait for acknowledgements.
      if (message === "too many pending") return;
      this.#hand(message, request);
    }
  }

  #nextMessage(): Message | "none" | "too many pending" {
    for (let sequence = this.#again.shift(); sequence !== undefined; sequence = this.#again.shift()) {
      const message = this.#stream.messages.get(sequence);
      const pending = this.#pending.get(sequence);
      if (message === undefined) this.#forget(sequence);
      if (message === undefined || pending === undefined) continue;
      if (this.config.max_deliver < 0 || pending.deliveries < this.config.max_deliver) return message;
      this.#pending.delete(sequence);
    }
    const { max_ack_pending: most } = this.config;
    const [next] = this.#fresh;
    if (next !== undefined && most > 0 && this.#pending.size >= most) return "too many pending";
    const message = next === undefined ? undefined : this.#stream.messages.get(next);
    if (message === undefined) {
      this.#nextSequence = Math.max(this.#nextSequence, this.#stream.messages.lastSequence + 1);
      this.#count.recount(0);
      return "none";
    }
    this.#fresh.delete(message.sequence);
    this.#nextSequence = message.sequence + 1;
    return message;
  }

  #hand(message: Message, request: PullRequest): void {
    const { sequence, subject, data, headers, wallMs } = message;
    const before = this.#pending.get(sequence);
    const deliveries = (before?.deliveries ?? 0) + 1;
    if (deliveries === 1) this.#count.change(-1);
    this.#delivered += 1;
    this.#lastActiveMs = this.#clock.wall();
    const place = before?.place ?? this.#delivered;
    if (this.config.ack_policy !== "none") {
      this.#wait(sequence, { deliveries, place }, nanosToMs(this.config.ack_wait));
      this.#written.deliver(sequence, this.#delivered);
    }
    // In turn: whoever got one goes to the end of the line.
    this.#waiting.shift();
    request.left -= 1;
    if (request.left > 0) {
      this.#waiting.push(request);
      request.awaitSilence(this.#clock, () => this.#showLife(request));
    } else {
      request.stop();
    }
    const address = `${this.#stream.config.name}.${this.name}.${deliveries}.${sequence}.${this.#delivered}`;
    const reply = `$JS.ACK.${address}.${writeNanos(wallMs)}.${this.#fresh.size}`;
    this.#outlet.send(request.inbox, { subject, reply, data, headers });
  }

  #turnAwayHasty(): void {
    for (const request of this.#waiting.filter(({ noWait }) => noWait)) {
      this.#end(request);
      this.#status(request.inbox, 404, "No Messages");
    }
  }

  #wait(sequence: number, of: { readonly deliveries: number } & Delivered, ms: number): void {
    const dueAt = this.#clock.monotonic() + ms;
    this.#pending.set(sequence, { ...of, dueAt });
    this.#redelivery.noLaterThan(dueAt);
  }

  #queueOverdue(): void {
    const now = this.#clock.monotonic();
    for (const sequence of this.#pending.keys()) {
      if (sequence < this.#stream.messages.firstSequence) this.#forget(sequence);
    }
    const overdue = [...this.#pending].filter(([, { dueAt }]) => dueAt <= now).map(([sequence]) => sequence);
    for (const sequence of overdue.toSorted((a, b) => a - b)) this.#queueAgain(sequence);
    const queued = new Set(this.#again);
    const others = [...this.#pending].filter(([sequence]) => !queued.has(sequence));
    if (others.length > 0) this.#redelivery.noLaterThan(Math.min(...others.map(([, { dueAt }]) => dueAt)));
    this.#deliver();
  }

  #waitOn(sequence: number): void {
    const pending = this.#pending.get(sequence);
    if (pending === undefined) return;
    const now = this.#clock.monotonic();
    if (pending.dueAt <= now) pending.dueAt = now + nanosToMs(this.config.ack_wait);
    this.#redelivery.noLaterThan(pending.dueAt);
  }

  #queueAgain(sequence: number): void {
    if (this.#pending.has(sequence) && !this.#again.includes(sequence)) this.#again.push(sequence);
  }

  #settle(sequence: number, place: number): void {
    const message = this.#stream.messages.get(sequence);
    const pending = this.#pending.get(sequence);
    if (message !== undefined && pending !== undefined) {
      this.#acknowledged.push({ at: this.#clock.monotonic(), message, ...pending });
      if (this.#acknowledged.length > 2 * REMEMBERED) this.#acknowledged.splice(0, REMEMBERED);
    }
    // The real one writes down even what it does not wait for any more.
    if (!this.#forget(sequence)) this.#written.acknowledge(sequence, place);
    const isMine = message !== undefined && this.wants(message.subject);
    if (isMine && this.#stream.config.retention === "workqueue") this.#stream.remove(sequence);
    this.#deliver();
  }

  #refuse(sequence: number, text: string): void {
    const pending = this.#pending.get(sequence);
    if (pending === undefined) return;
    const delayMs = readDelayMs(text);
    if (delayMs > 0) {
      this.#again = this.#again.filter((each) => each !== sequence);
      this.#wait(sequence, pending, delayMs);
    } else {
      this.#queueAgain(sequence);
      this.#deliver();
    }
  }

  #extend(sequence: number): void {
    const pending = this.#pending.get(sequence);
    if (pending !== undefined) {
      this.#wait(sequence, pending, nanosToMs(this.config.ack_wait));
    }
  }

  /** It is not waited for any more: it was acknowledged, or it is gone. Answers whether it was waited for. */
  #forget(sequence: number): boolean {
    const pending = this.#pending.get(sequence);
    this.#again = this.#again.filter((each) => each !== sequence);
    if (pending === undefined) return false;
    this.#pending.delete(sequence);
    if (this.#pending.size === 0) this.#floor.reset(this.#nextSequence, this.#delivered);
    else this.#floor.move(sequence, pending, this.#pending);
    this.#written.acknowledge(sequence, pending.place);
    return true;
  }

  #state(): ConsumerState {
    return {
      nextSequence: this.#nextSequence,
      delivered: this.#delivered,
      floor: this.#floor,
      pending: this.#pending,
    };
  }

  #dropUninterested(): void {
    for (const request of this.#waiting) {
      if (!this.#outlet.hasInterest(request.inbox)) this.#end(request);
    }
  }

  #end(request: PullRequest): void {
    request.stop();
    this.#waiting = this.#waiting.filter((each) => each !== request);
  }

  #expire(request: PullRequest): void {
    this.#end(request);
    if (!this.#outlet.hasInterest(request.inbox)) return;
    this.#status(request.inbox, 408, "Request Timeout", [
      ["Nats-Pending-Messages", String(request.left)],
      ["Nats-Pending-Bytes", "0"],
    ]);
  }

  #showLife(request: PullRequest): void {
    request.awaitSilence(this.#clock, () => this.#showLife(request));
    this.#status(request.inbox, 100, "Idle Heartbeat", [
      ["Nats-Last-Consumer", String(this.#delivered)],
      ["Nats-Last-Stream", String(this.#nextSequence - 1)],
    ]);
  }

  #status(inbox: string, status: number, text: string, fields: readonly (readonly [string, string])[] = []): void {
    this.#outlet.send(inbox, { headers: writeHeaders(fields, status, text) });
  }

  #leaveIfUnused(): void {
    const { inactive_threshold: threshold } = this.config;
    if (threshold === undefined || threshold <= 0) return;
    this.#dropUninterested();
    const now = this.#clock.monotonic();
    if (this.#waiting.length > 0) this.#usedAt = now;
    const leaveAt = this.#usedAt + nanosToMs(threshold);
    if (leaveAt <= now) this.#onInactive();
    else this.#inactivity.noLaterThan(leaveAt);
  }
}

function readDelayMs(text: string): number {
  try {
    return nanosToMs((JSON.parse(text) as { readonly delay?: number }).delay);
  } catch {
    return 0;
  }
}
