/** Starts keys for the desks that want them. */
import type { Clock } from "../../domain/clock.ts";
import { Damaged } from "./damage.ts";
import type { Coming, Desk } from "./desk.ts";
import type { GoingBack } from "./going-back.ts";
import { announcedBy, type KeyStore } from "./key-store.ts";
import type { Leases } from "./leases.ts";
import type { Held } from "./own-leases.ts";
import type { KeyItem, Seen } from "./state.ts";
import type { Token } from "./token.ts";
import { sendUnanswered } from "./unanswered.ts";
import type { Wire } from "./wire.ts";

export interface Arrived {
  readonly level: number;
  /** Its level has waited too long: it goes first. */
  readonly isFirst: boolean;
  readonly token: Token;
}

export interface DeskStartsParts {
  readonly store: KeyStore;
  readonly leases: Leases;
  readonly wire: Wire;
  readonly goingBack: GoingBack;
  /** After so many keys in a row, each at once, a worker is expected to be as quick with the next. */
  readonly briefAfter: number;
  /** Something failed. */
  readonly rest: () => void;
  /** It is there, or will not come. */
  readonly begun: (desk: Desk, coming: Coming) => void;
}

export class DeskStarts {
  readonly #parts: DeskStartsParts;
  readonly #clock: Clock;
  /** Keys that are being started. */
  #starting = 0;
  #allStarted: (() => void) | undefined;
  #closed = false;

  constructor(parts: DeskStartsParts) {
    this.#parts = parts;
    this.#clock = parts.store.clock;
  }

  /** What is being started is there, or will not come. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#starting === 0) return;
    await new Promise<void>((resolve) => {
      this.#allStarted = resolve;
    });
  }

  begin(desk: Desk, { level, token, isFirst }: Arrived, isEarly = false): void {
    const since = this.#clock.monotonic();
    const coming: Coming = { level, since, isFetched: true, isFirst, held: undefined, isUnwanted: false };
    desk.add(coming, isEarly);
    this.#starting += 1;
    this.#start(token, desk, (held) => {
      coming.since = this.#clock.monotonic();
      coming.held = held;
      if (held === undefined) desk.forget(coming);
      else if (coming.isUnwanted) this.release(coming);
      this.#startedOne();
      this.#parts.begun(desk, coming);
    });
  }

  /**
   * By the write that brings its first item. Undefined: nothing was done.
   * @param isLooked whether it is looked if something more urgent is ready: a server that is busy may answer the write before it has handed out what was
   * there first
   */
  beginFirst(desk: Desk, key: string, item: KeyItem, isLooked: boolean): Promise<Seen | undefined> | undefined {
    const { store, leases, begun } = this.#parts;
    const { level } = item;
    const isUrgentReady = isLooked ? store.isReadyAbove(level).catch(() => false) : undefined;
    const first = leases.startFirst(key, item, desk);
    if (first === undefined) return undefined;
    const since = this.#clock.monotonic();
    const coming: Coming = { level, since, isFetched: false, isFirst: false, held: undefined, isUnwanted: false };
    desk.promised.add(coming);
    this.#starting += 1;
    first.held
      .then(async (held) => {
        if (held !== undefined && isUrgentReady !== undefined && (await isUrgentReady)) coming.isUnwanted = true;
        desk.promised.delete(coming);
        coming.since = this.#clock.monotonic();
        coming.held = held;
        const isWanted = held !== undefined && !this.#closed && !coming.isUnwanted && desk.hasRoom;
        if (isWanted) desk.add(coming);
        else coming.isUnwanted = true;
        // Whatever came of it: what arrived meanwhile was sent back, because the slot was promised.
        begun(desk, coming);
        if (held !== undefined && !isWanted) await leases.release(held);
      })
      .catch(() => undefined)
      .finally(() => this.#startedOne());
    return first.written;
  }

  release(coming: Coming): void {
    coming.isUnwanted = true;
    const { store, leases } = this.#parts;
    if (coming.held !== undefined) store.background(leases.release(coming.held));
  }

  #startedOne(): void {
    this.#starting -= 1;
    if (this.#starting === 0) this.#allStarted?.();
  }

  /** Tells what has begun; undefined: there is nothing to be given out. */
  #start(token: Token, desk: Desk, tell: (held: Held | undefined) => void): void {
    const fail = (error: unknown): void => {
      // It is delivered again, to whoever asks then: at once, unless the key cannot be read, which says nothing about the others.
      if (!(error instanceof Damaged)) {
        this.#parts.goingBack.add(token);
        this.#parts.rest();
      }
      tell(undefined);
    };
    this.#parts.leases.start(token, desk, desk.ahead.run >= this.#parts.briefAfter).then((held) => {
      if (held !== undefined && held.item?.id === undefined && held.behind.every(({ id }) => id === undefined))
        tell(held);
      else this.#lookAt(token, held).then(tell, fail);
    }, fail);
  }

  /** Undefined: it has not begun, or what was begun is not to run. */
  async #lookAt(token: Token, held: Held | undefined): Promise<Held | undefined> {
    const { store, leases, wire, goingBack } = this.#parts;
    if (held === undefined) {
      const found = await store.read(token.key);
      // Somebody has it for a moment, and its end is the acknowledgement: if they are gone, it is delivered again.
      if (found.state.brief === token.seen.sequence) return undefined;
      // Still what the key is known by, but not for this try: it comes back.
      if (announcedBy(found) === token.seen.sequence) goingBack.add(token);
      else if (token.delivery !== undefined) sendUnanswered(wire, token.delivery.reply, "+ACK");
      return undefined;
    }
    const [isVoid, behind] = await Promise.all([store.isVoid(held.item), store.untilVoid(held.behind)]);
    if (!isVoid && behind.length === held.behind.length) return held;
    // Nothing is to be covered that is not handed out: whoever cancels it would be told that it may have begun.
    if (!isVoid) return (await leases.narrow(held)) ? held : undefined;
    // What is not to run is dropped without a word.
    await leases.drop(held);
    return undefined;
  }
}
