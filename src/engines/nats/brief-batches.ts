/**
 * The records of brief leases, in batches. A batch is open for a while; when all that was begun in it has ended, and some time has passed, what is
 * left of it is cleared away with one request.
 *
 *   open ──a while──▶ shut ──all have ended, a second ago──▶ cleared away
 */
import { type Clock, pause } from "../../domain/clock.ts";
import { end } from "./endings.ts";
import { without } from "./freeing.ts";
import { IDLE_SECONDS, type KeyStore } from "./key-store.ts";
import type { Knocks } from "./knocks.ts";
import { readRecords } from "./records.ts";
import { FENCES_PER_MESSAGE, type KeyState } from "./state.ts";

/** A batch is open for so long, and longer where it takes long to clear one away: this many times as long as that took. */
const OPEN_MS = 250;
const LONGEST_OPEN_MS = 5_000;
const OPEN_PER_CLEARING = 20;
/** What is done is there for as long as any idle key: whoever brought the item, and heard nothing, must find that it was there. */
const SPENT_MS = IDLE_SECONDS * 1_000;
/** Fewer records are removed one by one. The server counts the whole queue anew when several go at once. */
const WORTH_A_PURGE = 64;
/** Of a look at several records. */
const PAGE = 256;
/** When it failed. */
const AGAIN_MS = 250;

interface Ended {
  readonly key: string;
  readonly sequence: number;
}

/** Records of one session that are removed together. */
export class Batch {
  readonly name: string;
  readonly session: string;
  readonly since: number;
  /** The first of them. Whoever knocked before that meant others. */
  first: number = Number.POSITIVE_INFINITY;
  /** Being started, or in work. */
  open = 0;
  /** Nothing is added to it any more. */
  isShut = false;
  /** Something in it may still be somebody's: its records go one by one. */
  isMixed = false;
  isClearing = false;
  readonly ended: Ended[] = [];
  /** Of the last of them, by the monotonic clock. */
  endedAt: number = Number.NEGATIVE_INFINITY;

  constructor(name: string, session: string, since: number) {
    this.name = name;
    this.session = session;
    this.since = since;
  }
}

export class BriefBatches {
  readonly #store: KeyStore;
  readonly #clock: Clock;
  readonly #knocks: Knocks;
  readonly #all = new Set<Batch>();
  /** By session: the one that is open. */
  readonly #open = new Map<string, Batch>();
  #openMs = OPEN_MS;

  constructor(store: KeyStore, knocks: Knocks) {
    this.#store = store;
    this.#clock = store.clock;
    this.#knocks = knocks;
  }

  get size(): number {
    return this.#all.size;
  }

  /** The one for what is started now. */
  enter(session: string): Batch {
    let batch = this.#open.get(session);
    if (batch === undefined) {
      batch = new Batch(this.#store.nonce(), session, this.#clock.monotonic());
      this.#open.set(session, batch);
      this.#all.add(batch);
    }
    batch.open += 1;
    return batch;
  }

  /** The item is done: its record means nothing any more. */
  end(batch: Batch, ended: Ended): void {
    batch.ended.push(ended);
    batch.endedAt = this.#clock.monotonic();
  }

  sweep(): void {
    const now = this.#clock.monotonic();
    for (const batch of this.#all) {
      if (!batch.isShut && now - batch.since >= this.#openMs) {
        batch.isShut = true;
        this.#open.delete(batch.session);
      }
      const isOver = batch.isShut && batch.open === 0 && now - batch.endedAt >= SPENT_MS;
      if (isOver && !batch.isClearing) this.#store.background(this.#clear(batch));
    }
  }

  /** What is done is cleared away. */
  async close(): Promise<void> {
    this.#open.clear();
    await Promise.allSettled(Array.from(this.#all, (batch) => this.#clear(batch)));
  }

  async #clear(batch: Batch): Promise<void> {
    batch.isClearing = true;
    try {
      const { js, subjects } = this.#store;
      const { ended } = batch;
      if (ended.length < WORTH_A_PURGE || batch.isMixed || batch.open > 0) {
        await Promise.all(ended.map(({ sequence }) => js.remove(subjects.stream, sequence)));
      } else {
        const begun = this.#clock.monotonic();
        await js.purge(subjects.stream, subjects.allOfBatch(batch.name));
        const tookMs = this.#clock.monotonic() - begun;
        this.#openMs = Math.min(LONGEST_OPEN_MS, Math.max(OPEN_MS, tookMs * OPEN_PER_CLEARING));
      }
      // Looked at when the records are gone: nobody can change them any more.
      if (ended.length > 0 && (await this.#knocks.newest(batch.session)) > batch.first)
        await this.#finishChanged(batch);
      this.#all.delete(batch);
    } finally {
      // When it failed it is tried again, but not at once.
      if (this.#all.has(batch)) await pause(this.#clock, AGAIN_MS);
      batch.isClearing = false;
    }
  }

  /**
   * A server that was killed may have forgotten that a ready message was acknowledged. Whoever knocked after that took the item for one that
   * runs, and nobody would ever end it.
   */
  async #finishChanged({ ended, session }: Batch): Promise<void> {
    const store = this.#store;
    const { js, subjects } = store;
    for (let from = 0; from < ended.length; from += PAGE) {
      const page = ended.slice(from, from + PAGE);
      const fences = new Map(page.map(({ key, sequence }) => [key, sequence * FENCES_PER_MESSAGE]));
      const names = page.map(({ key }) => subjects.record(key));
      const found = readRecords(await js.lastOfAll(subjects.stream, names));
      await Promise.all(
        found.map(async ({ key, state }) => {
          const isIt = ({ lease }: KeyState): boolean => lease?.session === session && lease.fence === fences.get(key);
          if (!isIt(state)) return;
          await store.letGo(key, (seen, now) => {
            if (!isIt(seen.state)) return undefined;
            return without(seen.state, end(key, seen.state, { ending: { type: "done" } }, now));
          });
        }),
      );
    }
  }
}
