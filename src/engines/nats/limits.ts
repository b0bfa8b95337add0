/** What may be accepted, as far as limits go, and how often that is counted. */
import { type BatonError, InvalidInput, KeyBusy, KeyFull, QueueFull } from "../../domain/errors.ts";
import type { Submission } from "../../engine/port.ts";
import type { Counts } from "./counts.ts";
import { textOf } from "./key-token.ts";
import type { KeyStore } from "./key-store.ts";

/** Keys of which this process remembers how much may be added. */
const MOST_ALLOWANCES = 20_000;
/** Beyond this many, what a key or queue holds is not counted before every item. */
const EXACT_BELOW = 1_000;

export class Limits {
  readonly #store: KeyStore;
  readonly #counts: Counts;
  readonly #queue: string;
  readonly #levels: readonly string[];
  /** Per key: items that may be added before its line is counted again. */
  readonly #allowance = new Map<string, number>();

  constructor(store: KeyStore, counts: Counts, queue: string, levels: readonly string[]) {
    this.#store = store;
    this.#counts = counts;
    this.#queue = queue;
    this.#levels = levels;
  }

  /** Most are: nothing has to be looked up for them. */
  isPlain({ id, mode, delayMs, keyLimit, queueLimit, keepMs, level }: Submission): boolean {
    return (
      id === undefined &&
      keepMs === 0 &&
      mode === "fifo" &&
      delayMs === 0 &&
      keyLimit > EXACT_BELOW &&
      queueLimit > EXACT_BELOW &&
      this.#levels.includes(level) &&
      this.#counts.isFarFrom(queueLimit)
    );
  }

  /** Why an item is not accepted, as far as limits go. */
  async refusal(key: string, submission: Submission): Promise<BatonError | undefined> {
    const { mode, level, keyLimit, queueLimit } = submission;
    if (!this.#levels.includes(level)) return new InvalidInput("level", level, `one of ${this.#levels.join(", ")}`);
    if (mode === "strict" && (await this.#isBusy(key))) return new KeyBusy(this.#queue, textOf(key));
    if (mode === "fifo" && !(await this.hasRoom(key, 1, submission)))
      return new KeyFull(this.#queue, textOf(key), keyLimit);
    if (mode === "latest" && (await this.#counts.behind(key, true)) > 0) return undefined;
    if (await this.#counts.isFull(queueLimit, EXACT_BELOW)) return new QueueFull(this.#queue, queueLimit);
    return undefined;
  }

  async #isBusy(key: string): Promise<boolean> {
    const [seen, delayed] = await Promise.all([this.#store.read(key), this.#store.receipts.hasDelayed(key)]);
    return (
      delayed ||
      (seen.state.kind !== "idle" &&
        !(seen.state.kind === "parked" && seen.state.items.length === 0 && (await this.#counts.behind(key)) === 0))
    );
  }

  /** Small limits are exact. Of large ones a part is allowed before the line is counted again. */
  async hasRoom(key: string, count: number, submission: Submission | undefined): Promise<boolean> {
    const limit = submission?.keyLimit ?? 0;
    if (limit <= EXACT_BELOW) return (await this.#counts.behind(key)) + count <= limit;
    if (this.useAllowance(key, count)) return true;
    const behind = await this.#counts.behind(key);
    if (behind + count > limit) return false;
    this.#allowance.set(key, Math.max(0, Math.floor((limit - behind - count) / 2)));
    return true;
  }

  useAllowance(key: string, count: number): boolean {
    const allowance = this.#allowance.get(key) ?? EXACT_BELOW;
    if (allowance < count) return false;
    this.#allowance.set(key, allowance - count);
    if (this.#allowance.size > MOST_ALLOWANCES) this.#allowance.clear();
    return true;
  }
}
