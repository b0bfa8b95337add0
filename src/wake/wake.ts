import { randomUUID } from "node:crypto";
import { type Clock, stayingAlive, systemClock } from "../domain/clock.ts";
import { InvalidInput } from "../domain/errors.ts";
import { isError } from "../domain/realms.ts";
import { ByQueue } from "./by-queue.ts";
import { type WakeFinding, wakeFinding, type WakeReport } from "./finding.ts";
import { Hints } from "./hints.ts";
import { Outage, type WakeEvent } from "./outage.ts";
import { Outbox, type Signal } from "./outbox.ts";
import type { WakeAdapter } from "./port.ts";
import { SharedListener } from "./shared-listener.ts";
import { type Sleepers, Slots } from "./slots.ts";
import { type Entry, readText } from "./text.ts";
import { within } from "./within.ts";

/** Which lease: its holder knows it by these. */
export interface LostLease {
  readonly queue: string;
  readonly key: string;
  readonly fence: number;
}

/** Called with the ids of items that ended; without any when all that one waits for should be looked at. */
export type EndedListener = (ids: readonly string[] | undefined) => void;
export type LostLeaseListener = (lost: LostLease) => void;

export interface WakeOptions {
  /** Begins the names of all channels and budgets: stores that share a carrier need prefixes of their own. Default `baton`. */
  readonly prefix?: string | undefined;
  readonly clock?: Clock | undefined;
  /** Hears that the carrier is away, and that it is back. */
  readonly onEvent?: ((event: WakeEvent) => void) | undefined;
}

/** A signal that could not be sent, as a store that has another way would want to know it. */
export type Untold =
  | { readonly type: "work" | "ended"; readonly queue: string }
  | ({ readonly type: "lost" } & LostLease);

/** A carrier that takes longer is of little use. */
const CHECK_MS = 3_000;
/** What was told last is worth this long a wait when the process ends: a new connection over a slow line takes half of it. */
const FLUSH_MS = 1_000;
/** And letting go of the carrier this long: it has nothing left to do. */
const LET_GO_MS = 250;
/** With a dot and the longest signal it must fit into the name of a channel of PostgreSQL, which has 63 bytes. */
const PREFIX = /^(?=.{1,48}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

/**
 * Tells other processes, and hears from them, that work has come, that items have ended and that leases went to somebody else. Each of
 * these three signals has one channel, and one subscription in this process while somebody listens.
 *
 * Nothing here is needed for correctness, and nothing fails: what cannot be told is found by those who look by themselves. Listeners
 * are called as if from an event, and must not throw. What this object sends reaches its own listeners at once, and only them
 * if they are enough: work for which somebody sleeps here is not announced elsewhere.
 *
 * Whoever listens registers first and looks at the store afterwards. Then nothing falls between: when it takes time until messages
 * arrive, listeners are called once they do, as after a reconnect.
 */
export class Wake {
  readonly #adapter: WakeAdapter;
  readonly #sender = randomUUID();
  readonly #hints: Hints;
  readonly #outbox: Outbox;
  readonly #channels: Readonly<Record<Signal, SharedListener>>;
  readonly #work = new ByQueue<{ readonly sleepers: Sleepers; readonly slots: Slots }>();
  readonly #ended = new ByQueue<EndedListener>();
  readonly #lost = new Set<LostLeaseListener>();
  readonly #clock: Clock;
  readonly #channelOf: (signal: Signal) => string;
  readonly #budgetOf: (queue: string) => string;
  readonly #outage: Outage;
  readonly #hearing = new Set<() => void>();
  /** Set by a store that can tell in another way what the carrier did not take. */
  onUntold: (untold: readonly Untold[]) => void = () => undefined;
  #trouble: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(
    adapter: WakeAdapter,
    { prefix = "baton", clock = systemClock, onEvent = () => undefined }: WakeOptions = {},
  ) {
    if (!PREFIX.test(prefix)) {
      const rule = "words of letters, digits, _ or - with dots between them, 48 characters at most";
      throw new InvalidInput("wakePrefix", prefix, rule);
    }
    this.#outage = new Outage(adapter.name, clock, onEvent);
    const troubleWithHints = (error: unknown): void => {
      this.#trouble = isError(error) ? error.message : String(error);
    };
    const trouble = (error: unknown): void => {
      troubleWithHints(error);
      this.#outage.failed(error);
    };
    const sent = (): void => this.#outage.worked();
    const channelOf = (signal: Signal): string => `${prefix}.${signal}`;
    this.#adapter = adapter;
    this.#clock = clock;
    this.#channelOf = channelOf;
    this.#budgetOf = (queue) => `${prefix}.${queue}`;
    this.#hints = new Hints(() => adapter.hints, clock, troubleWithHints);
    const { budgetOf, hints } = { budgetOf: this.#budgetOf, hints: this.#hints };
    const untold = (signal: Signal, entries: readonly Entry[]): void => this.onUntold(untoldOf(signal, entries));
    const parts = { adapter, hints, sender: this.#sender, clock, channelOf, budgetOf };
    this.#outbox = new Outbox({ ...parts, sent, trouble, untold });
    const channel = (signal: Signal, heard: (entries: readonly Entry[]) => void, missed: () => void): SharedListener =>
      new SharedListener({
        adapter,
        channel: channelOf(signal),
        clock,
        heard: (text) => this.#read(text, heard),
        missed,
        changed: () => this.#hearingChanged(),
        trouble,
      });
    this.#channels = {
      work: channel("work", this.#heardWork, this.#wakeAll),
      ended: channel("ended", this.#heardEnded, this.#lookAtAll),
      // A loss that was missed is found at the next renewal.
      lost: channel("lost", this.#heardLost, () => undefined),
    };
  }

  /** So many more keys of the queue are ready than the sender takes itself. */
  work(queue: string, count: number): void {
    if (this.#isClosed || count <= 0) return;
    let left = count;
    for (const { sleepers } of this.#work.of(queue)) {
      const woken = Math.min(left, sleepers.idle());
      if (woken > 0) sleepers.wake(woken);
      left -= woken;
    }
    if (left > 0) this.#outbox.work(queue, left);
  }

  /** One of those who sleep in other processes should look: what it finds there only this process knows, which may die. */
  elsewhere(queue: string): void {
    if (!this.#isClosed) this.#outbox.work(queue, 1);
  }

  /** Something of the queue changed that any of those who wait may be concerned by: it goes on, or a key that somebody waits to hold is free. */
  stir(queue: string): void {
    if (this.#isClosed) return;
    for (const { sleepers } of this.#work.of(queue)) sleepers.stir();
    this.#outbox.stir(queue);
  }

  /** These items of the queue, which are remembered, have ended; undefined: some. */
  ended(queue: string, ids: readonly string[] | undefined): void {
    if (this.#isClosed || ids?.length === 0) return;
    for (const tell of this.#ended.of(queue)) tell(ids);
    this.#outbox.ended(queue, ids);
  }

  /** A lease ran out, and its key went to somebody else. */
  lost({ queue, key, fence }: LostLease): void {
    if (this.#isClosed) return;
    for (const tell of this.#lost) tell({ queue, key, fence });
    this.#outbox.lost([queue, key, fence]);
  }

  /** Wakes those who sleep for want of work in the queue. Returns what ends that. */
  onWork(queue: string, sleepers: Sleepers): () => void {
    const slots = new Slots(this.#budgetOf(queue), this.#hints, sleepers);
    const leaveQueue = this.#work.add(queue, { sleepers, slots });
    const leaveChannel = this.#channels.work.join();
    return () => {
      leaveChannel();
      leaveQueue();
    };
  }

  /** Tells when items of the queue have ended. */
  onEnded(queue: string, tell: EndedListener): () => void {
    const leaveQueue = this.#ended.add(queue, tell);
    const leaveChannel = this.#channels.ended.join();
    return () => {
      leaveChannel();
      leaveQueue();
    };
  }

  /** Tells of every lease that is said to be lost anywhere. Whoever holds one knows whether it is theirs, and asks the store whether it is true. */
  onLost(tell: LostLeaseListener): () => void {
    this.#lost.add(tell);
    const leave = this.#channels.lost.join();
    return () => {
      leave();
      this.#lost.delete(tell);
    };
  }

  /** Whether it is sure, as far as one can know, that work which others announce is heard here. Otherwise a store looks by itself. */
  get hears(): boolean {
    return this.#channels.work.isHearing;
  }

  /** Tells whenever `hears` may have changed. */
  onHearing(tell: () => void): void {
    this.#hearing.add(tell);
  }

  report(): WakeReport {
    return { carrier: this.#adapter.name, hasHints: this.#adapter.hints !== undefined, trouble: this.#trouble };
  }

  /** Tries the carrier out, and says what an operator should know: a finding for the check of the engine that is woken by it. */
  async check(): Promise<WakeFinding> {
    const trouble = (error: unknown): void => {
      this.#trouble = isError(error) ? error.message : String(error);
    };
    // The clock's timers let a process end; one that does nothing but check must not, while its carrier is away.
    const stay = setTimeout(() => undefined, CHECK_MS * 2);
    try {
      const answer = await within(this.#clock, CHECK_MS, this.#probe(), trouble);
      if (answer !== undefined) this.#trouble = undefined;
      return wakeFinding(this.report());
    } finally {
      clearTimeout(stay);
    }
  }

  /** What goes wrong here would go wrong with a signal. The letter is empty, and the budget nobody's. */
  async #probe(): Promise<void> {
    const channel = this.#channelOf("work");
    const stop = await this.#adapter.listen(
      channel,
      () => undefined,
      () => undefined,
    );
    await stop();
    await this.#adapter.publish([{ channel, text: JSON.stringify([this.#sender]) }]);
    await this.#adapter.hints?.take(this.#budgetOf("-"));
  }

  /**
   * Sends what is still to be sent, and lets go of the carrier. Takes little more than a second, whatever state the carrier is in, and never
   * rejects: what it could not send is found by those who look.
   */
  close(): Promise<void> {
    this.#closing ??= stayingAlive(this.#close());
    return this.#closing;
  }

  get #isClosed(): boolean {
    return this.#closing !== undefined;
  }

  async #close(): Promise<void> {
    const late = (error: unknown): void => {
      this.#outage.failed(error);
      this.#outbox.giveUp();
    };
    await within(this.#clock, FLUSH_MS, this.#outbox.flush(), late);
    // Together: a subscription that is just being made, or ended, may wait for a carrier that is away.
    const ends = [...Object.values(this.#channels).map((channel) => channel.close()), this.#adapter.close()];
    await within(this.#clock, LET_GO_MS, Promise.allSettled(ends), () => undefined);
  }

  #hearingChanged(): void {
    if (this.hears) {
      this.#trouble = undefined;
      this.#outage.worked();
    }
    for (const tell of this.#hearing) tell();
  }

  #read(text: string, heard: (entries: readonly Entry[]) => void): void {
    const letter = readText(text);
    if (letter === undefined || letter.sender === this.#sender) return;
    this.#trouble = undefined;
    this.#outage.worked();
    heard(letter.entries);
  }

  readonly #heardWork = (entries: readonly Entry[]): void => {
    for (const [queue, count = Infinity, isBudgeted] of entries) {
      if (typeof queue !== "string" || typeof count !== "number" || !(count > 0)) continue;
      for (const { sleepers, slots } of this.#work.of(queue)) {
        if (count === Infinity) sleepers.stir();
        else if (isBudgeted === 1 && this.#adapter.hints !== undefined) slots.offer(count);
        else wakeSome(sleepers, count);
      }
    }
  };

  readonly #heardEnded = (entries: readonly Entry[]): void => {
    const ended = new Map<string, string[] | undefined>();
    for (const [queue, id] of entries) {
      if (typeof queue !== "string") continue;
      if (typeof id !== "string") ended.set(queue, undefined);
      else if (!ended.has(queue)) ended.set(queue, [id]);
      else ended.get(queue)?.push(id);
    }
    for (const [queue, ids] of ended) for (const tell of this.#ended.of(queue)) tell(ids);
  };

  readonly #heardLost = (entries: readonly Entry[]): void => {
    for (const [queue, key, fence] of entries) {
      if (typeof queue !== "string" || typeof key !== "string" || typeof fence !== "number") continue;
      for (const tell of this.#lost) tell({ queue, key, fence });
    }
  };

  readonly #wakeAll = (): void => {
    for (const { sleepers } of this.#work.all()) sleepers.stir();
  };

  readonly #lookAtAll = (): void => {
    for (const tell of this.#ended.all()) tell(undefined);
  };
}

function wakeSome(sleepers: Sleepers, count: number): void {
  const woken = Math.min(count, sleepers.idle());
  if (woken > 0) sleepers.wake(woken);
}

/** Who should look, of those who cannot be told more. */
function untoldOf(signal: Signal, entries: readonly Entry[]): readonly Untold[] {
  const untold: Untold[] = [];
  const named = new Set<string>();
  for (const [queue, second, third] of entries) {
    if (typeof queue !== "string") continue;
    if (signal === "lost") {
      if (typeof second === "string" && typeof third === "number")
        untold.push({ type: "lost", queue, key: second, fence: third });
    } else if (!named.has(queue)) untold.push({ type: signal, queue });
    named.add(queue);
  }
  return untold;
}
