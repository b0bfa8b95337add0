/** How many items a key and a queue hold. */
import type { KeyStore } from "./key-store.ts";
import type { JetStream } from "./jetstream.ts";
import { coveredOf, type KeyState } from "./state.ts";
import type { QueueSubjects } from "./subjects.ts";

/** A total that is far from a limit is believed for so long. */
const BELIEVED_MS = 1_000;
/** A queue that was full is counted again after so long: who is refused would ask again and again. */
const FULL_MS = 50;

export class Counts {
  readonly #js: JetStream;
  readonly #subjects: QueueSubjects;
  readonly #shared: string;
  readonly #store: KeyStore;
  /** Waiting and delayed items of the whole queue, counted exactly. */
  readonly #exact: () => Promise<number>;
  #total = 0;
  #countedAt: number | undefined;
  /** Of a limit that is near: how many more are accepted without counting, and until when. None: it is full. */
  #room: { readonly limit: number; left: number; readonly until: number } | undefined;
  #counting: Promise<void> | undefined;

  constructor(store: KeyStore, shared: string, exact: () => Promise<number>) {
    this.#js = store.js;
    this.#subjects = store.subjects;
    this.#store = store;
    this.#shared = shared;
    this.#exact = exact;
  }

  /** Items of a key that wait or are delayed; without those that a lease covers, if told so. */
  async behind(key: string, isUncovered = false): Promise<number> {
    const [{ state }, delayed, due] = await Promise.all([this.#store.read(key), this.delayed(key), this.due(key)]);
    const covered = isUncovered ? Math.max(0, coveredOf(state) - 1) : 0;
    return (await this.waiting(key, state)) + delayed + due - covered;
  }

  /** Those that have come due, and that nobody has brought to the key yet. */
  async due(key: string): Promise<number> {
    let count = 0;
    for await (const _ of this.#store.receipts.due(this.#subjects.due(key))) count += 1;
    return count;
  }

  async delayed(key: string): Promise<number> {
    return (await this.#js.subjects(this.#shared, this.#subjects.laterOf(key))).size;
  }

  /** @param known what stands in its lines, by subject, if that was asked for already */
  async waiting(key: string, state: KeyState, known?: ReadonlyMap<string, number>): Promise<number> {
    const carried = state.kind === "running" ? state.items.length - 1 : state.items.length;
    const line = known ?? (await this.#js.subjects(this.#subjects.stream, this.#subjects.waitingOf(key)));
    let total = carried;
    for (const count of line.values()) total += count;
    // What is counted at three moments need not fit together while somebody works.
    return Math.max(0, total - (await this.takenLeft(key, state.taken, line)));
  }

  /** Items that were taken out of the line of a key, and are still in the stream. */
  async takenLeft(key: string, taken: readonly number[], line: ReadonlyMap<string, number>): Promise<number> {
    let left = 0;
    for (const [level, sequence] of taken.entries()) {
      if (sequence === 0 || !line.has(this.#subjects.waiting(level, key))) continue;
      for await (const waiting of this.#store.line(key, level, 0)) {
        if (waiting.sequence > sequence) break;
        left += 1;
      }
    }
    return left;
  }

  async #count(): Promise<void> {
    const info = await this.#js.streamInfo(this.#subjects.stream);
    this.#total = info?.state.messages ?? 0;
  }

  /** Small limits are exact. Of what is left of a large one, half is given out before everything is counted again, however many ask. */
  async isFull(limit: number, exactBelow: number): Promise<boolean> {
    if (limit <= exactBelow) return (await this.#exact()) >= limit;
    if (this.isFarFrom(limit)) return false;
    for (;;) {
      const room = this.#room;
      if (room?.limit === limit && this.#store.clock.monotonic() < room.until) {
        if (room.left === 0) return true;
        room.left -= 1;
        if (room.left === 0) this.#room = undefined;
        return false;
      }
      this.#counting ??= this.#countRoom(limit).finally(() => (this.#counting = undefined));
      await this.#counting;
    }
  }

  async #countRoom(limit: number): Promise<void> {
    const left = Math.ceil(Math.max(0, limit - (await this.#exact())) / 2);
    const believedMs = left === 0 ? FULL_MS : BELIEVED_MS;
    this.#room = { limit, left, until: this.#store.clock.monotonic() + believedMs };
  }

  /** By a total that may be a moment old. Nobody waits for a new one: submissions must not overtake one another. */
  isFarFrom(limit: number): boolean {
    const now = this.#store.clock.monotonic();
    if (this.#countedAt === undefined || now - this.#countedAt > BELIEVED_MS) {
      this.#countedAt = now;
      this.#store.background(this.#count());
    }
    return this.#total < limit / 2;
  }
}
