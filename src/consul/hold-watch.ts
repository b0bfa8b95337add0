/**
 * Notices that Consul no longer has a hold that this process has not released: its key was deleted or released by somebody
 * else, or its session was destroyed. Each such change wakes a blocking query.
 *
 * A query that fails says nothing about the hold: it is asked again, and the lease decides meanwhile. Every query asks for a
 * consistent answer, because a server that has just started or been elected may not know the newest keys yet.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Closed } from "../domain/errors.ts";
import type { ConsulApi, Entries, Entry } from "./api.ts";
import { HOLD_CONNECTIONS } from "./http.ts";
import { nextIndex } from "./next-index.ts";
import { lockState, nonceIn } from "./lock-keys.ts";

/** Most locks are held for less time than this, and then cost no query of their own. */
const BEGIN_AFTER_MS = 50;
/** So many holds have a query each, which wakes only when that hold is lost. The others share one query for the whole prefix. */
const MOST_APART = HOLD_CONNECTIONS - 1;
/** A connection that died without a sound is noticed when a query has not come back: so queries are short, as renewals are. */
const WAIT_SHARE = 1 / 3;
const WAIT_MS = [1_000, 60_000] as const;
/** A long list costs Consul and this process much, and every lock of the prefix wakes it: the longer, the more seldom it is asked for. */
const REST_MS_PER_ENTRY = 0.05;
const REST_MS = [20, 1_000] as const;
/** After a query that failed. */
const PAUSE_MS = [50, 1_000] as const;

export interface WatchedHold {
  /** The key of its slot. */
  readonly key: string;
  readonly fence: number;
  readonly nonce: string;
  /** Consul's, which has locked the key. */
  readonly consulSession: string;
  readonly leaseMs: number;
  /** Called once, when Consul no longer has the hold. */
  readonly lost: () => void;
  /** Called now and then, with the keys beside its own that Baton did not write, if there are any. */
  readonly foreign: (found: readonly string[]) => void;
}

export class HoldWatch {
  readonly #api: ConsulApi;
  readonly #prefix: string;
  /** Held for less than `BEGIN_AFTER_MS`. They do not begin a query; one that is under way covers them as well. */
  readonly #fresh = new Set<WatchedHold>();
  readonly #together = new Set<WatchedHold>();
  /** Holds of these two that no answer about the prefix has covered. The next query asks for what changed since their grant. */
  readonly #unseen = new Set<WatchedHold>();
  #apart = 0;
  #isListing = false;
  /** The query for the prefix that is under way. */
  #listing: { readonly index: number; readonly stop: AbortController } | undefined;

  constructor(api: ConsulApi, prefix: string) {
    this.#api = api;
    this.#prefix = `${prefix}/`;
  }

  /**
   * Watches until the returned function is called, which must be before the hold is released. A query that is under way then is
   * left alone: the release answers it, and its connection can be used again.
   */
  begin(hold: WatchedHold): () => void {
    const ended = new AbortController();
    const timer = setTimeout(() => this.#start(hold, ended.signal), BEGIN_AFTER_MS);
    timer.unref();
    this.#fresh.add(hold);
    this.#unseen.add(hold);
    // The reply to the grant came late: the loss may be among the changes that the query under way no longer waits for.
    if (this.#listing !== undefined && this.#listing.index > hold.fence) this.#listing.stop.abort();
    return () => {
      ended.abort();
      clearTimeout(timer);
      this.#forget(hold);
    };
  }

  #start(hold: WatchedHold, ended: AbortSignal): void {
    // Not there: the list of another hold has found that this one is lost.
    if (!this.#fresh.delete(hold)) return;
    if (this.#apart < MOST_APART) {
      this.#unseen.delete(hold);
      this.#apart += 1;
      void this.#watchApart(hold, ended).finally(() => (this.#apart -= 1));
      return;
    }
    this.#together.add(hold);
    if (this.#isListing) return;
    this.#isListing = true;
    void this.#watchTogether().finally(() => (this.#isListing = false));
  }

  async #watchApart(hold: WatchedHold, ended: AbortSignal): Promise<void> {
    let index = hold.fence;
    await this.#repeat(
      () => !ended.aborted,
      async () => {
        const found =
          index === 0 ? await this.#look(hold) : await this.#api.get(hold.key, { index, waitMs: waitMsFor([hold]) });
        index = nextIndex(index, found);
        if (ended.aborted || isKept(hold, found.entry)) return 0;
        this.#lose(hold);
        return Infinity;
      },
    );
  }

  /** At the whole lock, because somebody may lock beside it. */
  async #look(hold: WatchedHold): Promise<{ readonly entry: Entry | undefined; readonly index: number }> {
    const lock = lockOf(hold.key);
    const found = await this.#api.list(lock, { isForHolds: true });
    tellForeign(hold, lock, found);
    return { entry: found.entries.find(({ key }) => key === hold.key), index: found.index };
  }

  async #watchTogether(): Promise<void> {
    let index = 0;
    await this.#repeat(
      () => this.#together.size > 0,
      async () => {
        const before = new Set([...this.#together, ...this.#fresh]);
        const asked = Math.min(index, ...Array.from(this.#unseen, fenceOf));
        const found = await this.#list(asked);
        const { entries, index: now } = found;
        const byKey = new Map(entries.map((entry) => [entry.key, entry]));
        for (const hold of [...this.#together, ...this.#fresh]) {
          // A hold that was granted after the list was made is not in it.
          if (!before.has(hold) && hold.fence > now) continue;
          this.#unseen.delete(hold);
          if (!isKept(hold, byKey.get(hold.key))) this.#lose(hold);
        }
        if (asked === 0) this.#tellForeign(found);
        index = nextIndex(index, { index: now });
        return Math.min(Math.max(entries.length * REST_MS_PER_ENTRY, REST_MS[0]), REST_MS[1]);
      },
    );
  }

  async #list(index: number): Promise<Entries> {
    const stop = new AbortController();
    this.#listing = { index, stop };
    try {
      const after = { index, waitMs: waitMsFor(this.#together) };
      return await this.#api.list(this.#prefix, { after, isForHolds: true, signal: stop.signal });
    } finally {
      this.#listing = undefined;
    }
  }

  /** Not with every change: many locks are much to go through. */
  #tellForeign({ entries, index }: Entries): void {
    const byLock = Map.groupBy(entries, ({ key }) => key.slice(0, key.indexOf("/", this.#prefix.length) + 1));
    for (const hold of this.#together) {
      const lock = lockOf(hold.key);
      tellForeign(hold, lock, { entries: byLock.get(lock) ?? [], index });
    }
  }

  #lose(hold: WatchedHold): void {
    this.#forget(hold);
    hold.lost();
  }

  #forget(hold: WatchedHold): void {
    this.#fresh.delete(hold);
    this.#together.delete(hold);
    this.#unseen.delete(hold);
  }

  /** `ask` returns how long to rest before the next query; Infinity: it was the last. Nothing in here keeps the process alive. */
  async #repeat(isWanted: () => boolean, ask: () => Promise<number>): Promise<void> {
    let pauseMs: number = PAUSE_MS[0];
    while (isWanted()) {
      let restMs: number;
      try {
        restMs = await ask();
        pauseMs = PAUSE_MS[0];
      } catch (error) {
        if (error instanceof Closed) return;
        // Refusals, too: a token may be replaced, and renewals tell the user of what stays wrong.
        restMs = pauseMs;
        pauseMs = Math.min(pauseMs * 2, PAUSE_MS[1]);
      }
      if (restMs === Infinity) return;
      if (restMs > 0) await sleep(restMs, undefined, { ref: false });
    }
  }
}

function isKept({ fence, nonce, consulSession }: WatchedHold, entry: Entry | undefined): boolean {
  if (entry?.session !== consulSession) return false;
  // The same session may have locked the slot again, for another hold.
  return entry.createIndex <= fence && (nonceIn(entry) ?? nonce) === nonce;
}

/** The beginning of all keys of the lock whose slot this is. */
function lockOf(key: string): string {
  return key.slice(0, key.lastIndexOf("slot/"));
}

function tellForeign(hold: WatchedHold, lock: string, found: Entries): void {
  const { foreign } = lockState("", lock, found);
  if (foreign.length > 0) hold.foreign(foreign);
}

function fenceOf({ fence }: WatchedHold): number {
  return fence;
}

function waitMsFor(holds: Iterable<WatchedHold>): number {
  const shortest = Math.min(...Array.from(holds, ({ leaseMs }) => leaseMs));
  return Math.min(Math.max(Math.round(shortest * WAIT_SHARE), WAIT_MS[0]), WAIT_MS[1]);
}
