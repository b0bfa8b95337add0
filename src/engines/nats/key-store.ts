/**
 * Reads and writes how keys stand. Every write is a compare-and-swap on the key's state subjects, so of two that saw the
 * same state one is refused; the refused one looks again.
 */
import { type Clock, pause } from "../../domain/clock.ts";
import { BatonError, OutcomeUnknown } from "../../domain/errors.ts";
import { ASSIGNED_ID_MARK } from "../../domain/names.ts";
import type { PutResult, Stored } from "./api-replies.ts";
import { asError } from "./as-error.ts";
import { damagedKey, readable } from "./damage.ts";
import { decodeItem, decodeState, encodeItem, encodeState, firstState, placed } from "./codec.ts";
import type { PutOptions } from "./headers.ts";
import { fenceOf } from "./fence-room.ts";
import type { JetStream } from "./jetstream.ts";
import { textOf } from "./key-token.ts";
import type { Nonces } from "./nonce.ts";
import type { Puts } from "./puts.ts";
import type { FoundReceipt, Receipts } from "./receipts.ts";
import { Lost, Unserved } from "./requests.ts";
import { free, type Heads, isBig, type Look, MOST_TAKEN, NO_LOOK, STAYS_ANNOUNCED, takeAlong } from "./rules.ts";
import { firstSent, type Sent, seenOf } from "./sent.ts";
import { isRecord, type KeyItem, type KeyState, type Seen, UNSEEN, type Waiting } from "./state.ts";
import type { QueueSubjects } from "./subjects.ts";

/** How long a key that became idle is still there: as short as a server can make it. */
export const IDLE_SECONDS = 1;
const MOST_TRIES = 6;
const LINE_PAGE = 64;
/** Of the life of an idle key, counted here from before a write, within which it cannot have vanished there. */
const CERTAIN_PART = 0.8;

/** A delivery that is not taken up comes again after a second. */
const BRING_MS = 5_000;
const BRING_STEP_MS = 10;

/** What a write without a promise came to: done, refused, or not known yet. */
export type Written = Sent | Promise<Seen | undefined> | undefined;

/** A change of a key, as it is sent. */
interface Write {
  readonly subject: string;
  readonly data: Uint8Array | string;
  readonly options: PutOptions & { readonly rollup: boolean };
}

export class KeyStore {
  readonly subjects: QueueSubjects;
  readonly levels: number;
  readonly clock: Clock;
  readonly receipts: Receipts;
  /** Bytes that a message may have. */
  readonly room: number;
  readonly js: JetStream;
  readonly #puts: Puts;
  readonly #nonces: Nonces;
  readonly #background: (work: Promise<unknown>) => void;
  readonly #takeInDue: () => Promise<unknown>;

  constructor(parts: {
    readonly js: JetStream;
    readonly subjects: QueueSubjects;
    readonly levels: number;
    readonly clock: Clock;
    readonly receipts: Receipts;
    readonly nonces: Nonces;
    readonly room: number;
    readonly background: (work: Promise<unknown>) => void;
    readonly puts: Puts;
    /** Brings what has come due to its keys, as far as nobody else is about to. */
    readonly takeInDue: () => Promise<unknown>;
  }) {
    this.js = parts.js;
    this.#puts = parts.puts;
    this.subjects = parts.subjects;
    this.levels = parts.levels;
    this.clock = parts.clock;
    this.receipts = parts.receipts;
    this.room = parts.room;
    this.#nonces = parts.nonces;
    this.#background = parts.background;
    this.#takeInDue = parts.takeInDue;
  }

  /** How a key stands. */
  async read(key: string): Promise<Seen> {
    const stored = await this.js.last(this.subjects.stream, this.subjects.state(key));
    if (stored === undefined) return UNSEEN;
    try {
      return { sequence: stored.sequence, state: decodeState(stored.data, stored.sequence) };
    } catch (error) {
      throw damagedKey(this.subjects, key, stored, error);
    }
  }

  /**
   * The first of the line at each level. Where there may be none, one look tells whether there is anything at all.
   * @param carried what the key carries goes before what stands in line at its level and below: nobody looks there
   */
  async heads(key: string, state: KeyState, carried: readonly KeyItem[] = []): Promise<Heads> {
    if (state.more !== true) {
      const anything = await this.js.next(this.subjects.stream, this.subjects.waitingOf(key), 1);
      if (anything === undefined) return [];
    }
    const length = Math.min(this.levels, ...carried.map(({ level }) => level));
    const levels = Array.from({ length }, (_, level) => level);
    return await Promise.all(levels.map((level) => this.head(key, level, state)));
  }

  /** Whether nothing is in the line of a key that is closing. What was taken out of it is removed first: it would be found. */
  async isLineOver(key: string, state: KeyState): Promise<boolean> {
    if (state.takenLeft > 0) await this.purgeTaken(key, state.taken);
    return (await this.js.next(this.subjects.stream, this.subjects.waitingOf(key), 1)) === undefined;
  }

  /** The first of the line at one level. */
  async head(key: string, level: number, { taken, cut }: KeyState): Promise<Waiting | undefined> {
    for (let after = taken[level] ?? 0; ;) {
      const found = await this.js.next(this.subjects.stream, this.subjects.waiting(level, key), after + 1);
      if (found === undefined) return undefined;
      // What cannot be read is stepped over: it was never an item.
      const [waiting] = cut.includes(found.sequence) ? [] : readable([found], waitingIn);
      if (waiting !== undefined) return waiting;
      after = found.sequence;
    }
  }

  /** Whether a key of a more urgent level is ready, or was a moment ago. */
  async isReadyAbove(level: number): Promise<boolean> {
    const { stream } = this.subjects;
    const above = Array.from({ length: level }, (_, other) => this.js.next(stream, this.subjects.readyAt(other), 1));
    return (await Promise.all(above)).some((found) => found !== undefined);
  }

  /** The next few of one level. */
  async few(key: string, level: number, after: number, count: number): Promise<readonly Waiting[]> {
    const { stream } = this.subjects;
    const found: Waiting[] = [];
    for (let from = after; ;) {
      const wanted = count - found.length;
      const page = await this.js.nextFew(stream, this.subjects.waiting(level, key), from + 1, wanted);
      const read = readable(page, waitingIn);
      found.push(...read);
      const last = page.at(-1);
      // Fewer than there were: some could not be read, and others may stand behind them.
      if (last === undefined || read.length === page.length) return found;
      from = last.sequence;
    }
  }

  /** What stands in line behind the first item that a key carries, for whoever does not have it. */
  async #lookBehind(key: string, { items, taken, cut }: KeyState): Promise<Look> {
    const level = items[0]?.level ?? 0;
    if (this.js.isReplicated(this.subjects.stream)) return NO_LOOK;
    const behind = await this.few(key, level, taken[level] ?? 0, MOST_TAKEN - 1);
    return { ...NO_LOOK, behind: behind.filter(({ sequence }) => !cut.includes(sequence)) };
  }

  /** One level of the line, from behind a sequence on. */
  async *line(key: string, level: number, after: number): AsyncGenerator<Waiting> {
    for (let from = after; ;) {
      const page = await this.few(key, level, from, LINE_PAGE);
      yield* page;
      const last = page.at(-1);
      if (last === undefined) return;
      from = last.sequence;
    }
  }

  /** Undefined: the key does not stand as it was seen. Not tried again once it `isGood` no more. What the change leaves behind is cleared away afterwards. */
  write(key: string, seen: Seen, next: KeyState, isGood?: () => boolean): Promise<Seen | undefined> {
    const wanted = this.#overlay(seen, next);
    const clean =
      wanted.below.length === 0 && wanted.todo.length === 0 && wanted.takenLeft === 0 && wanted.cut.length === 0;
    const written = this.#put(key, seen, wanted, clean, isGood);
    const replaced = isRecord(wanted) || levelOf(seen.state) !== levelOf(wanted) ? 0 : announcedBy(seen);
    if (replaced !== 0) return this.#without(replaced, written);
    // Others may see it as idle from now on; it vanishes when nothing depends on it any more.
    return clean || wanted.kind !== "idle" ? written : this.#thenFinishIdle(key, written);
  }

  /** The server has answered: what it was to remove together with the write is gone. */
  async #without(replaced: number, writing: Promise<Seen | undefined>): Promise<Seen | undefined> {
    const seen = await writing;
    if (seen === undefined) return undefined;
    const below = seen.state.below.filter((sequence) => sequence !== replaced);
    return { sequence: seen.sequence, state: { ...seen.state, below } };
  }

  /** Reads, changes, writes, and again if somebody else was faster. `change` may refuse with undefined. */
  async change(
    key: string,
    change: (seen: Seen) => Promise<KeyState | undefined> | KeyState | undefined,
  ): Promise<Seen | undefined> {
    for (;;) {
      const seen = await this.read(key);
      const next = await change(seen);
      if (next === undefined) return undefined;
      const todo = next.todo.filter((entry) => !seen.state.todo.includes(entry));
      // What the one before left to do is done before it is forgotten; what lies below it is dead for ever.
      await this.settleLeftovers(key, seen.state);
      const bare = { sequence: seen.sequence, state: { ...seen.state, below: [] } };
      const written = await this.write(key, bare, {
        ...next,
        todo,
        cut: next.cut.filter((sequence) => !seen.state.cut.includes(sequence)),
        takenLeft: next.takenLeft - seen.state.takenLeft,
      });
      if (written === undefined) continue;
      await this.clear(key, written);
      return await this.sayDone(key, { ...written, state: { ...written.state, below: [], cut: [] } });
    }
  }

  /**
   * A dead letter or a delay that was written is not listed any longer: repeated much later it would undo what happened to
   * it since. Whoever changed the key meanwhile has repeated it already, a moment after.
   */
  async sayDone(key: string, seen: Seen): Promise<Seen> {
    const { state } = seen;
    const isDelicate = state.todo.some(({ type }) => type === "dead" || type === "later");
    if (!isDelicate || state.kind === "idle") return seen;
    const announced = state.kind === "ready" ? STAYS_ANNOUNCED : 0;
    return (await this.write(key, seen, { ...state, announced, todo: [] })) ?? seen;
  }

  /**
   * Takes a key out of the hands it is in, or looks again at one that is in nobody's. `ends` says what is left of it, or
   * refuses. It is at least as late as `atLeast`, whatever this process's clock says. A key may only become idle after it has said that nobody may join it in silence, and its line was looked at.
   */
  async letGo(
    key: string,
    ends: (seen: Seen, now: number) => KeyState | undefined,
    atLeast = 0,
  ): Promise<Seen | undefined> {
    for (;;) {
      let again = false;
      const written = await this.change(key, async (seen) => {
        again = false;
        const now = Math.max(this.clock.wall(), atLeast);
        const left = ends(seen, now);
        if (left === undefined) return undefined;
        const heads = await this.heads(key, seen.state);
        const next = free(left, left.items, heads, this.levels, now);
        // As many as a run may have.
        if (next.kind === "ready" && next.more === true)
          return takeAlong(next, await this.#lookBehind(key, next), this.room).state;
        if (next.kind !== "idle" || seen.state.more !== true) return next;
        again = true;
        return { ...seen.state, announced: STAYS_ANNOUNCED, more: "closing" };
      });
      if (!again) return written;
    }
  }

  /** An id stands for one item: another with the same id, or one that has ended, is not to run. */
  async isVoid(item: KeyItem | undefined): Promise<boolean> {
    const id = givenId(item);
    return item !== undefined && id !== undefined && (await this.#isVoid(item, id, await this.receipts.find(id)));
  }

  /** Of items that go one behind the other, those before the first that is void, or of which that cannot be read. One look for all. */
  async untilVoid(items: readonly KeyItem[]): Promise<readonly KeyItem[]> {
    const ids = items.map(givenId);
    if (ids.every((id) => id === undefined)) return items;
    const found = await this.receipts.findAll(ids.filter((id) => id !== undefined));
    for (const [index, item] of items.entries()) {
      const id = ids[index];
      const receipt = id === undefined ? undefined : found.get(id);
      if (id === undefined || receipt === undefined) continue;
      if (receipt === "damaged" || (await this.#isVoid(item, id, receipt))) return items.slice(0, index);
    }
    return items;
  }

  async #isVoid(item: KeyItem, id: string, known: FoundReceipt | undefined): Promise<boolean> {
    for (let found = known; found !== undefined; found = await this.receipts.find(id)) {
      const { pending, ...receipt } = found.receipt;
      if (receipt.unique !== item.unique || found.outcome !== undefined) return true;
      // From now on nobody can take the id over: its item runs.
      if (pending !== true || (await this.receipts.confirm(id, receipt, found.sequence)) !== undefined) return false;
    }
    return false;
  }

  /** Whatever a state still lists: done, and gone. */
  async settleLeftovers(key: string, state: KeyState): Promise<void> {
    await this.clear(key, { sequence: 0, state });
    if (state.takenLeft > 0) await this.purgeTaken(key, state.taken);
  }

  async purgeTaken(key: string, taken: readonly number[]): Promise<void> {
    await Promise.all(
      taken.map(async (sequence, level) => {
        if (sequence > 0) await this.js.purge(this.subjects.stream, this.subjects.waiting(level, key), sequence + 1);
      }),
    );
  }

  /** Does what a state has to leave elsewhere. Doing it twice does no harm. */
  async perform(key: string, { todo }: KeyState): Promise<void> {
    await Promise.all(todo.map((entry) => this.receipts.perform(entry, key)));
  }

  /** The same, and removes what lies below it. */
  async clear(key: string, { state }: Seen): Promise<void> {
    await this.perform(key, state);
    await Promise.all([...state.below, ...state.cut].map((sequence) => this.js.remove(this.subjects.stream, sequence)));
  }

  /**
   * Adds an item to the line, on condition that the key still stands as seen. Undefined: it does not. Throws `SwitchedOff` only if it was surely
   * not added.
   */
  async append(key: string, seen: Seen, item: KeyItem): Promise<number | undefined> {
    const subject = this.subjects.waiting(item.level, key);
    const options = { expect: seen.sequence, check: this.subjects.state(key) };
    const data = encodeItem(item);
    let isUncertain = false;
    for (let tries = MOST_TRIES; ; tries -= 1) {
      try {
        const result = await (tries === MOST_TRIES
          ? new Promise<PutResult>((resolve, reject) => {
              this.#puts.put({ subject, data, options, changes: false, resolve, reject });
            })
          : this.js.put(subject, data, options));
        return result.refused ? undefined : result.sequence;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        isUncertain ||= !(error instanceof Unserved);
        // What nobody served was not written; and the whole stream may be a new one.
        if (!isUncertain && (await this.read(key)).sequence !== seen.sequence) return undefined;
        const place = await this.#placeOf(key, seen, item).catch((unread: unknown) => {
          throw isUncertain ? new OutcomeUnknown("a submission", { cause: unread }) : asError(unread);
        });
        if (place !== undefined) return place;
        if (tries <= 1) throw new OutcomeUnknown("a submission", { cause: error });
      }
    }
  }

  subjectOf(key: string, state: KeyState): string {
    return isRecord(state) ? this.subjects.record(key) : this.subjects.ready(levelOf(state), key);
  }

  background(work: Promise<unknown>): void {
    this.#background(work);
  }

  nonce(): string {
    return this.#nonces.next();
  }

  /** What of a key has come due is at the key, whoever brings it there. It may have been delivered to a process that stands still: it comes again. */
  async bringDue(key: string): Promise<void> {
    const end = this.clock.monotonic() + BRING_MS;
    while (await this.receipts.isAnyDue(key)) {
      if (this.clock.monotonic() > end) throw notBrought(this.subjects.queue, textOf(key));
      await this.#takeInDue();
      await pause(this.clock, BRING_STEP_MS);
    }
  }

  /** What lies below a new state: the record before it, unless the write removes it, and the message that the key was announced by. */
  #overlay(seen: Seen, next: KeyState): KeyState {
    const { state } = seen;
    const announced = announcedBy(seen);
    const { below } = state;
    const wanted: KeyState = {
      ...next,
      nonce: this.#nonces.next(),
      more: next.kind === "ready" && isBig(next.items[0]) ? true : next.more,
      below,
      announced: next.kind === "ready" && next.announced !== 0 ? announced : 0,
      recordBelow: false,
    };
    if (isRecord(wanted))
      return wanted.kind === "ready" || announced === 0 ? wanted : { ...wanted, below: [...below, announced] };
    return {
      ...wanted,
      recordBelow: (seen.sequence > 0 && isRecord(state)) || state.recordBelow,
      // Also one that this write replaces: a server that is killed in the middle of it may have stored the one and not removed the other.
      below: announced === 0 ? below : [...below, announced],
    };
  }

  /**
   * The first message of a key that is most likely idle, without a promise: `answer` hears of it, or that the key is not
   * idle, or what went wrong.
   */
  begin(key: string, item: KeyItem, answer: (written: Written) => void): void {
    const first = firstSent(item);
    if (first === undefined) answer(this.#put(key, UNSEEN, firstState(item), true));
    else this.#send(key, this.subjects.ready(item.level, key), undefined, first, answer);
  }

  /** The same for a key that stands as it was sent, with more items. */
  extend(key: string, before: Sent, next: Sent, answer: (written: Written) => void): void {
    this.#send(key, this.subjects.record(key), before, next, answer);
  }

  #send(key: string, subject: string, before: Sent | undefined, next: Sent, answer: (written: Written) => void): void {
    const begun = this.clock.monotonic();
    const check = this.subjects.state(key);
    this.#puts.put({
      subject,
      data: next.data,
      options: { expect: before?.sequence ?? 0, check, rollup: before !== undefined && before.announced !== 0 },
      changes: true,
      resolve: (result) => {
        if (result.refused) return answer(undefined);
        next.sequence = result.sequence;
        answer(next);
      },
      reject: (error) => {
        const seen = before === undefined ? UNSEEN : seenOf(before);
        const { state } = seenOf(next);
        const write = this.#writeOf(key, seen, state, true);
        answer(this.#putAgain(key, seen, state, write, always, begun, error));
      },
    });
  }

  /** Every start and every end of an item comes through here: one promise, and more only when the first try failed. */
  #put(key: string, seen: Seen, state: KeyState, clean: boolean, isGood = always): Promise<Seen | undefined> {
    return this.#sendWrite(key, seen, state, this.#writeOf(key, seen, state, clean), isGood);
  }

  #sendWrite(key: string, seen: Seen, state: KeyState, write: Write, isGood: () => boolean): Promise<Seen | undefined> {
    const begun = this.clock.monotonic();
    return new Promise((resolve) => {
      this.#puts.put({
        ...write,
        changes: true,
        resolve: (result) => resolve(result.refused ? undefined : settled(result.sequence, state)),
        reject: (error) => resolve(this.#putAgain(key, seen, state, write, isGood, begun, error)),
      });
    });
  }

  #writeOf(key: string, seen: Seen, state: KeyState, clean: boolean): Write {
    const options = {
      expect: seen.sequence,
      check: this.subjects.state(key),
      rollup: isRecord(state)
        ? seen.state.recordBelow || (seen.sequence > 0 && isRecord(seen.state))
        : announcedBy(seen) !== 0 && levelOf(seen.state) === levelOf(state),
    };
    return {
      subject: this.subjectOf(key, state),
      data: encodeState(state),
      options: state.kind === "idle" && clean ? { ...options, ttlSeconds: IDLE_SECONDS } : options,
    };
  }

  /** @param error what became of the first try, which was begun then */
  async #putAgain(
    key: string,
    seen: Seen,
    state: KeyState,
    { subject, data, options }: Write,
    isGood: () => boolean,
    begun: number,
    error: Error,
  ): Promise<Seen | undefined> {
    let thrown: Error | undefined = error;
    // What nobody served was not written.
    let isUncertain = false;
    for (let tries = MOST_TRIES; ; tries -= 1) {
      try {
        if (thrown !== undefined) throw thrown;
        const result = await this.js.put(subject, data, options);
        if (!result.refused) return settled(result.sequence, state);
        if (!isUncertain) return undefined;
        const now = await this.read(key);
        if (now.state.nonce === state.nonce) return await this.#found(key, seen, now, options.rollup);
        throw new OutcomeUnknown("a change of a key");
      } catch (cause) {
        if (!(cause instanceof Lost)) throw cause;
        thrown = undefined;
        isUncertain ||= !(cause instanceof Unserved);
        // A stream that is closed can be read, and takes nothing.
        if (cause instanceof Unserved) await this.js.restored(cause);
        if (tries <= 1 || !isGood()) throw new OutcomeUnknown("a change of a key", { cause });
        const now = await this.read(key).catch((unread: unknown) => {
          throw isUncertain ? new OutcomeUnknown("a change of a key", { cause: unread }) : asError(unread);
        });
        if (now.sequence > 0 && now.state.nonce === state.nonce)
          return await this.#found(key, seen, now, options.rollup);
        if (!isUncertain && now.sequence !== seen.sequence) return undefined;
        // A key that is not there may have come, been worked on, and vanished meanwhile.
        const vanished =
          isUncertain && now.sequence === 0 && this.clock.monotonic() - begun > IDLE_SECONDS * 1_000 * CERTAIN_PART;
        // The look may have waited for the connection.
        if (now.sequence !== seen.sequence || vanished || !isGood())
          throw new OutcomeUnknown("a change of a key", { cause });
      }
    }
  }

  /**
   * A write whose reply was lost did happen. But a server that was killed in the middle of it may have stored it without removing what it
   * replaces, and that would come to light again when this vanishes. Undefined: so it did, and somebody has built on it.
   */
  async #found(key: string, before: Seen, now: Seen, rollup: boolean): Promise<Seen | undefined> {
    if (!rollup) return now;
    await this.js.purge(this.subjects.stream, this.subjectOf(key, now.state), now.sequence);
    if (now.state.kind !== "idle" || before.state.lease === undefined) return now;
    const { lease } = (await this.read(key)).state;
    return lease?.fence === before.state.lease.fence ? undefined : now;
  }

  async #thenFinishIdle(key: string, writing: Promise<Seen | undefined>): Promise<Seen | undefined> {
    const seen = await writing;
    if (seen === undefined) return undefined;
    await this.settleLeftovers(key, seen.state);
    const state: KeyState = {
      ...seen.state,
      below: [],
      todo: [],
      cut: [],
      takenLeft: 0,
      taken: [],
      nonce: this.#nonces.next(),
    };
    await this.#put(key, { sequence: seen.sequence, state: { ...seen.state, below: [] } }, state, true);
    return seen;
  }

  /** Where an item stands whose reply was lost. Undefined: it is not there, and the key stands as it did. */
  async #placeOf(key: string, seen: Seen, item: KeyItem): Promise<number | undefined> {
    for await (const waiting of this.line(key, item.level, seen.sequence))
      if (waiting.item.unique === item.unique) return waiting.sequence;
    const now = await this.read(key);
    const carried = now.state.items.find(({ unique }) => unique === item.unique);
    if (carried !== undefined) return carried.place;
    if (now.sequence !== seen.sequence) throw new OutcomeUnknown("a submission");
    return undefined;
  }
}

function notBrought(queue: string, key: string): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    `An item of queue ${queue} that was delayed is due, and could not be brought to its key ${JSON.stringify(key)}. Nothing was done. ` +
      "Look after the NATS server, then repeat the call.",
  );
}

/** The message by which consumers know a key that is ready; 0 when it is not. */
export function announcedBy({ sequence, state }: Seen): number {
  if (state.kind !== "ready") return 0;
  return state.announced === 0 ? sequence : state.announced;
}

/** An id that its submitter has chosen: others may have chosen the same. */
function givenId(item: KeyItem | undefined): string | undefined {
  return item?.id?.startsWith(ASSIGNED_ID_MARK) === true ? undefined : item?.id;
}

function waitingIn({ sequence, data }: Stored): Waiting {
  return { sequence, item: decodeItem(data, sequence) };
}

function levelOf({ items }: KeyState): number {
  return items[0]?.level ?? 0;
}

function always(): boolean {
  return true;
}

/** A state as whoever reads it will see it: what was "this very message" has a number now. */
export function settled(sequence: number, state: KeyState): Seen {
  const items = state.items.some(({ place }) => place === 0)
    ? state.items.map((item) => (item.place === 0 ? placed(item, sequence) : item))
    : state.items;
  const lease = state.lease?.fence === 0 ? { ...state.lease, fence: fenceOf(sequence) } : state.lease;
  return { sequence, state: { ...state, items, lease } };
}
