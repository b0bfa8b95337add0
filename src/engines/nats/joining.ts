/** Brings items to their keys: into the key's own record while they fit there, and into its line otherwise. */
import { type BatonError, KeyBusy } from "../../domain/errors.ts";
import { textOf } from "./key-token.ts";
import type { KeyStore } from "./key-store.ts";
import { partlyWritten } from "./requests.ts";
import type { Remembered } from "./remembered.ts";
import { join, lifts, sizeOf, totalOf } from "./rules.ts";
import { addTo, type Sent } from "./sent.ts";
import { type KeyItem, type KeyState, type Seen, UNSEEN } from "./state.ts";

export class Joining {
  readonly #store: KeyStore;
  readonly #queue: string;
  readonly #remembered: Remembered;

  constructor(store: KeyStore, queue: string, remembered: Remembered) {
    this.#store = store;
    this.#queue = queue;
    this.#remembered = remembered;
  }

  /** Brings an item to its key. Gives why it is refused, if it is. */
  async join(
    key: string,
    item: KeyItem,
    front: boolean,
    strict = false,
    isWanted?: () => Promise<boolean>,
  ): Promise<BatonError | undefined> {
    const store = this.#store;
    let seen = this.#remembered.get(key) ?? UNSEEN;
    for (;;) {
      if (isWanted !== undefined && !(await isWanted())) return undefined;
      if (strict && seen.state.kind !== "idle") {
        seen = await store.read(key);
        if (await this.#isInUse(key, seen.state)) return new KeyBusy(this.#queue, textOf(key));
      }
      const bytes = totalOf(seen.state);
      const joining = join(seen.state, item, front, store.levels, store.clock.wall(), bytes, store.room);
      if (joining.type === "append") {
        if ((await store.append(key, seen, item)) !== undefined) {
          this.#remembered.set(key, seen);
          if (lifts(seen.state, item)) await this.#lift(key, item);
          return undefined;
        }
      } else {
        const written = await this.#write(key, seen, joining.state);
        if (written !== undefined) {
          this.#remembered.set(key, written);
          if (written.state.items.some(({ unique }) => unique === item.unique)) return undefined;
          seen = written;
          continue;
        }
      }
      this.#remembered.delete(key);
      seen = await store.read(key);
    }
  }

  /** A key that is paused has a record, and may have nothing else. */
  async #isInUse(key: string, state: KeyState): Promise<boolean> {
    if (state.kind === "idle") return false;
    if (state.kind !== "parked" || state.items.length > 0) return true;
    return state.more !== false && (await this.#store.heads(key, state, [])).some((head) => head !== undefined);
  }

  /** The line of a key that nobody has got something more urgent: its head is chosen anew. */
  async #lift(key: string, item: KeyItem): Promise<void> {
    this.#remembered.delete(key);
    const letGo = this.#store.letGo(key, ({ state }) => (lifts(state, item) ? state : undefined));
    // The item is in its place, whatever becomes of this.
    await letGo.catch(partlyWritten);
  }

  /** Adds items to a key that stands as this process sent it. False: it does not, or they do not fit. */
  async extend(key: string, items: readonly KeyItem[]): Promise<boolean> {
    const sent = this.#remembered.peek(key);
    if (sent === undefined || sent === "known") return false;
    const next = addTo(sent, items, this.#store.nonce());
    if (next === undefined) return false;
    const written = await new Promise<Sent | Seen | undefined>((resolve) =>
      this.#store.extend(key, sent, next, resolve),
    );
    if (written === undefined) this.#remembered.delete(key);
    else if ("data" in written) this.#remembered.setSent(key, written);
    else this.#remembered.set(key, written);
    return written !== undefined;
  }

  /** How many of the items, from the first on, have joined at once. */
  joinTogether(key: string, items: readonly KeyItem[]): Promise<number> {
    const seen = this.#remembered.get(key) ?? UNSEEN;
    const carried = this.#carry(seen.state, items);
    return carried.count > 0 ? this.#writeTogether(key, seen, carried) : this.#appendTogether(key, seen, items);
  }

  /** As many items as the key's own state can take. */
  #carry(state: KeyState, items: readonly KeyItem[]): { readonly state: KeyState; readonly count: number } {
    const { levels, clock, room } = this.#store;
    const fresh = state.kind === "idle";
    let next = state;
    let bytes = totalOf(state);
    let count = 0;
    for (const item of items) {
      const joining = join(next, item, false, levels, clock.wall(), bytes, room);
      if (joining.type !== "write" || !joining.state.items.includes(item)) break;
      bytes += sizeOf(item);
      // What is not written yet has not been announced either.
      next = fresh ? { ...joining.state, announced: 0 } : joining.state;
      count += 1;
    }
    return { state: next, count };
  }

  async #writeTogether(
    key: string,
    seen: Seen,
    { state, count }: { readonly state: KeyState; readonly count: number },
  ): Promise<number> {
    const written = await this.#write(key, seen, state);
    if (written === undefined) this.#remembered.delete(key);
    else this.#remembered.set(key, written);
    return written === undefined ? 0 : count;
  }

  async #appendTogether(key: string, seen: Seen, items: readonly KeyItem[]): Promise<number> {
    // A replicated stream refuses a second condition on a key while the first is on its way.
    if (this.#store.js.isReplicated(this.#store.subjects.stream)) return 0;
    const end = items.findIndex(
      (item) =>
        lifts(seen.state, item) ||
        join(seen.state, item, false, this.#store.levels, this.#store.clock.wall(), 0, 0).type !== "append",
    );
    const joining = end === -1 ? items : items.slice(0, end);
    const places = await Promise.all(joining.map((item) => this.#store.append(key, seen, item)));
    const refused = places.indexOf(undefined);
    if (refused === -1) return joining.length;
    this.#remembered.delete(key);
    // Once the key has changed, every later one was refused too: the order is kept.
    return refused;
  }

  /** A write by somebody who does not have the key. */
  async #write(key: string, seen: Seen, next: KeyState): Promise<Seen | undefined> {
    // Only the one who wrote it knows whether this was done.
    if (seen.state.todo.length > 0) await this.#store.perform(key, seen.state);
    const written = await this.#store.write(key, seen, { ...next, todo: [] });
    if (written !== undefined && (written.state.below.length > 0 || written.state.todo.length > 0))
      this.#store.background(this.#store.clear(key, written));
    return written;
  }
}
