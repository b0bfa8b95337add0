/**
 * Leases that are meant to last for a moment, of keys with one plain item each. Most of what an item costs the server is its end: a record that
 * says that the key is idle, the removal of the one before, and its own. A brief lease needs neither. Its key's ready message is not acknowledged when
 * the item starts but when it is done, and that is the end: a key whose last word is a brief record, and whose ready message is gone, is idle. Such
 * records are removed many at a time, a batch of them with one request.
 *
 *   ready ──start──▶ brief ──acknowledged, nobody has knocked──▶ done     (its record lies there until its batch is cleared away)
 *                      ├────it lasts, fails or goes back──▶ kept           (an ordinary record; its ready message goes)
 *                      └────somebody has knocked──▶ its end is written, as that of any other
 *
 * An acknowledgement does not say whether it came in time. So whoever wants to change such a key first knocks, then looks whether the ready
 * message is still there, and only then changes the key; and whoever has it acknowledges first, and then looks whether somebody has knocked. If
 * nobody had, everybody who comes later finds the message gone, and takes the item for what it is: done. To start a key is what it always was, a
 * compare-and-swap; so whatever goes wrong here, nobody else has the key meanwhile.
 */
import { OutcomeUnknown } from "../../domain/errors.ts";
import type { Clock, Timer } from "../../domain/clock.ts";
import { PassingMap } from "../../domain/passing.ts";
import type { SettleResult } from "../../engine/port.ts";
import type { Acknowledgements, Delivery } from "./acknowledgements.ts";
import { asError } from "./as-error.ts";
import { type Batch, BriefBatches } from "./brief-batches.ts";
import { leavesNothing } from "./endings.ts";
import { takeIn } from "./holder-writes.ts";
import type { KeyStore } from "./key-store.ts";
import { Knocks } from "./knocks.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import type { Session } from "./sessions.ts";
import { type KeyState, NOTHING } from "./state.ts";
import type { Delivered, Token } from "./token.ts";

/** One that lasts longer is kept: its ready message would be delivered again after a second. */
const LONGEST_MS = 300;
/** How often it is looked whether one does. */
const SWEEP_MS = 100;
/** Where brief leases end otherwise more often than not, none is begun for so long. */
const REST_MS = 1_000;
const WEIGHT = 1 / 32;
const LEAST_SHARE = 0.5;

interface Ending {
  readonly brief: Brief;
  readonly resolve: (result: SettleResult | Promise<SettleResult | undefined>) => void;
  readonly reject: (error: Error) => void;
}

interface Brief {
  readonly held: Held;
  readonly batch: Batch;
  /** Of the ready message. */
  readonly delivery: Delivery;
  /** Of the record. */
  readonly sequence: number;
  readonly begun: number;
  /** That it is done is on its way. */
  isEnding: boolean;
  /** The ready message may be gone: from here on there is only one end, which may have to be asked for again. */
  isDone: boolean;
  /** It may be an ordinary one already: from here on it is ended as such. */
  isKept: boolean;
  keeping: Promise<void> | undefined;
}

export class BriefLeases {
  readonly #store: KeyStore;
  readonly #clock: Clock;
  readonly #leases: OwnLeases;
  readonly #acknowledgements: Acknowledgements;
  readonly #knocks: Knocks;
  readonly #briefs = new PassingMap<Held, Brief>();
  /** By session: what has ended in this turn. */
  readonly #ending = new Map<string, Ending[]>();
  readonly #batches: BriefBatches;
  /** Of the last ones, how many ended as they were meant to. */
  #share = 1;
  #restUntil = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #closed = false;

  constructor(store: KeyStore, leases: OwnLeases, acknowledgements: Acknowledgements) {
    this.#store = store;
    this.#clock = store.clock;
    this.#leases = leases;
    this.#acknowledgements = acknowledgements;
    this.#knocks = new Knocks(store);
    this.#batches = new BriefBatches(store, this.#knocks);
  }

  /** Where to write the record of a key that is about to start. Undefined: its lease is an ordinary one. */
  enter({ id }: Session, { seen, delivery }: Token): Batch | undefined {
    const { js, subjects } = this.#store;
    // Through a cluster's routes acknowledgements and looks may overtake each other.
    if (this.#closed || delivery === undefined || !isPlain(seen.state) || !js.isNear(subjects.stream)) return undefined;
    if (this.#clock.monotonic() < this.#restUntil) return undefined;
    const batch = this.#batches.enter(id);
    this.#plan();
    return batch;
  }

  /** It has not begun. */
  leave(batch: Batch): void {
    batch.open -= 1;
  }

  /** It may have begun, and nobody here will end it. */
  abandon(batch: Batch): void {
    batch.isMixed = true;
    batch.open -= 1;
  }

  begin(held: Held, batch: Batch, { consumer, reply }: Delivered): void {
    const { sequence, state } = held.streak.seen;
    const begun = this.#clock.monotonic();
    const brief: Brief = {
      held,
      batch,
      delivery: { consumer, reply, sequence: state.brief },
      sequence,
      begun,
      isEnding: false,
      isDone: false,
      isKept: false,
      keeping: undefined,
    };
    batch.first = Math.min(batch.first, sequence);
    this.#briefs.set(held, brief);
    held.streak.putOff(() => this.#keep(brief));
  }

  has(held: Held): boolean {
    return this.#briefs.has(held);
  }

  /** Its item is done. Undefined: somebody has changed the key, which is still this lease's, and its end is to be written. */
  end(held: Held): Promise<SettleResult | undefined> {
    const brief = this.#briefs.get(held);
    if (brief === undefined) return Promise.resolve(undefined);
    if (brief.isKept) return this.#keep(brief).then(() => undefined);
    brief.isEnding = true;
    brief.isDone = true;
    return new Promise((resolve, reject) => {
      const { session } = brief.batch;
      const ending = this.#ending.get(session);
      if (ending !== undefined) {
        ending.push({ brief, resolve, reject });
        return;
      }
      this.#ending.set(session, [{ brief, resolve, reject }]);
      process.nextTick(() => this.#endAll(session));
    });
  }

  /** All that ended in one turn: one confirmation and one look for them together. */
  #endAll(session: string): void {
    const ending = this.#ending.get(session) ?? [];
    this.#ending.delete(session);
    this.#acknowledgements
      .addAll(ending.map(({ brief }) => brief.delivery))
      .then(() => this.#knocks.newest(session))
      .then(
        (knocked) => {
          for (const { brief, resolve } of ending)
            // If the lease is over, a knock may have come, and vanished again, while the acknowledgement was on its way.
            resolve(
              knocked < brief.sequence && this.#leases.isGood(brief.held) ? this.#done(brief) : this.#endKnocked(brief),
            );
        },
        (error: unknown) => {
          for (const { brief, reject } of ending) {
            brief.isEnding = false;
            reject(asError(error));
          }
        },
      );
  }

  /** The lease ran out, or was taken away. */
  forget(held: Held): void {
    const brief = this.#briefs.get(held);
    if (brief === undefined) return;
    brief.batch.isMixed = true;
    this.#leave(brief);
  }

  /** What is done is cleared away. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    for (const { held } of this.#briefs.values()) this.forget(held);
    await this.#batches.close();
  }

  #done(brief: Brief): SettleResult {
    this.#count(true);
    this.#batches.end(brief.batch, { key: brief.held.key, sequence: brief.sequence });
    this.#leave(brief);
    return "settled";
  }

  /** The ready message is gone. Whoever has knocked may not have known that when they changed the key. */
  async #endKnocked(brief: Brief): Promise<SettleResult | undefined> {
    this.#count(false);
    try {
      return await this.#endChanged(brief);
    } finally {
      brief.isEnding = false;
    }
  }

  async #endChanged(brief: Brief): Promise<SettleResult | undefined> {
    const { held, sequence } = brief;
    const { key, streak } = held;
    const store = this.#store;
    const isGood = (): boolean => this.#leases.isGood(held);
    // A renewal may have learnt that others have come.
    const mayWrite = isGood() && leavesNothing(streak.seen.state);
    if (mayWrite && (await store.write(key, streak.seen, NOTHING, isGood)) !== undefined) return this.#done(brief);
    const now = await store.last(key);
    if (now.sequence !== sequence && streak.isMine(now.state.lease, held.fence)) {
      await store.js.remove(store.subjects.stream, sequence);
      await takeIn(store, held, now);
      this.#leave(brief);
      return undefined;
    }
    // Nobody takes a key from a session that lives: so whoever changed it found the item done.
    if (isGood()) return this.#done(brief);
    throw new OutcomeUnknown("a settlement");
  }

  /** From now on it is a lease like any other. */
  #keep(brief: Brief): Promise<void> {
    brief.isKept = true;
    brief.keeping ??= this.#makeOrdinary(brief).finally(() => {
      brief.keeping = undefined;
    });
    return brief.keeping;
  }

  async #makeOrdinary(brief: Brief): Promise<void> {
    const { held, delivery, sequence } = brief;
    const { key, streak } = held;
    if (!this.#briefs.has(held)) return;
    this.#count(false);
    const store = this.#store;
    const written = await store.write(key, streak.seen, streak.seen.state);
    if (written !== undefined) {
      streak.seen = written;
    } else {
      const now = await store.last(key);
      // Whoever writes next learns that it is lost.
      if (!streak.isMine(now.state.lease, held.fence)) return this.forget(held);
      await takeIn(store, held, now);
    }
    await Promise.all([this.#acknowledgements.addAll([delivery]), store.js.remove(store.subjects.stream, sequence)]);
    streak.seen = { sequence: streak.seen.sequence, state: { ...streak.seen.state, below: [] } };
    this.#leave(brief);
  }

  #leave({ held, batch }: Brief): void {
    if (!this.#briefs.delete(held)) return;
    held.streak.isReady = true;
    batch.open -= 1;
  }

  #count(wasBrief: boolean): void {
    this.#share += ((wasBrief ? 1 : 0) - this.#share) * WEIGHT;
    if (this.#share >= LEAST_SHARE) return;
    this.#share = 1;
    this.#restUntil = this.#clock.monotonic() + REST_MS;
  }

  #plan(): void {
    if (this.#closed || this.#batches.size === 0) return;
    this.#timer ??= this.#clock.setTimer(SWEEP_MS, () => {
      this.#timer = undefined;
      this.#sweep();
      this.#plan();
    });
  }

  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const brief of this.#briefs.values()) {
      const { held, isEnding, isDone, isKept, keeping, begun } = brief;
      if (isEnding || keeping !== undefined) continue;
      if (held.over || held.session.dead) this.forget(held);
      else if (!isDone && (isKept || now - begun >= LONGEST_MS)) this.#store.background(this.#keep(brief));
    }
    this.#batches.sweep();
  }
}

/** One item of which nothing has to be remembered, that was never tried, and nothing else: by far the most keys with one item are like this. */
function isPlain(state: KeyState): boolean {
  const [item] = state.items;
  if (item === undefined || state.items.length > 1 || state.kind !== "ready" || state.announced !== 0) return false;
  if (item.id !== undefined || item.attempts > 0 || item.keepMs > 0 || item.replaceable) return false;
  if (item.dueAt !== undefined || item.tried !== undefined) return false;
  const { more, paused, taken, cut, wanted, below, recordBelow, todo } = state;
  if (more !== false || paused || recordBelow) return false;
  return taken.length + cut.length + wanted.length + below.length + todo.length === 0;
}
