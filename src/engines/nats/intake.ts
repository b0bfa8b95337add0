/**
 * Brings what has come due to its keys. That may take long, because submissions of one key take effect one after the other; a delivery
 * that is not taken up for a second goes to somebody else, or comes here again. So the server is told that somebody is at it, one that comes
 * again is the same, and whoever was kept waiting looks once more before he adds the item to its key.
 */
import type { Clock, Timer } from "../../domain/clock.ts";
import { decodeItem } from "./codec.ts";
import { ACK_WAIT_MS } from "./consumers.ts";
import type { KeyStore } from "./key-store.ts";
import { lookAgain } from "./operate.ts";
import type { Pulled } from "./pulls.ts";
import type { KeyItem } from "./state.ts";
import { lastToken } from "./subjects.ts";
import type { Submitter } from "./submit.ts";
import { sendUnanswered } from "./unanswered.ts";
import type { Wire } from "./wire.ts";

/** So often the server hears that an item is still on its way to its key. */
const AT_IT_MS = ACK_WAIT_MS / 3;
/** After so long it may have been delivered again, to somebody else. */
const LATE_MS = ACK_WAIT_MS / 2;

/** What is delivered again meanwhile is answered by its last delivery. */
interface Coming {
  reply: string;
  readonly since: number;
  readonly work: Promise<unknown>;
}

export interface IntakeParts {
  readonly store: KeyStore;
  readonly submitter: Pick<Submitter, "arrive">;
  readonly wire: Wire;
  /** The stream in which it comes due. */
  readonly stream: string;
  /** Whether a consumer that is no more may have delivered what came then. */
  readonly mayBeSecond: (at: number) => boolean;
  /** It is at its key, or comes again. */
  readonly ended: () => void;
}

export class Intake {
  readonly #parts: IntakeParts;
  readonly #clock: Clock;
  /** By sequence. */
  readonly #coming = new Map<number, Coming>();
  #timer: Timer | undefined;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#clock = parts.store.clock;
  }

  /** Nothing is on its way to its key. */
  get isEmpty(): boolean {
    return this.#coming.size === 0;
  }

  /** What is on its way is there, or comes again. */
  all(): Promise<unknown> {
    return Promise.allSettled(Array.from(this.#coming.values(), ({ work }) => work));
  }

  take(pulled: Pulled): Promise<unknown> {
    const { sequence, reply } = pulled;
    const before = this.#coming.get(sequence);
    if (before !== undefined) {
      before.reply = reply;
      return before.work;
    }
    const since = this.#clock.monotonic();
    const work = this.#takeIn(pulled, since)
      .then((isIn) => {
        if (isIn) sendUnanswered(this.#parts.wire, this.#coming.get(sequence)?.reply ?? reply, "+ACK");
      })
      .catch(() => undefined)
      .finally(() => {
        this.#coming.delete(sequence);
        this.#plan();
        this.#parts.ended();
      });
    this.#coming.set(sequence, { reply, since, work });
    this.#plan();
    return work;
  }

  #plan(): void {
    if (this.isEmpty) {
      this.#timer?.cancel();
      this.#timer = undefined;
      return;
    }
    this.#timer ??= this.#clock.setTimer(AT_IT_MS, () => {
      this.#timer = undefined;
      const until = this.#clock.monotonic() - AT_IT_MS / 2;
      for (const { reply, since } of this.#coming.values())
        if (since <= until) sendUnanswered(this.#parts.wire, reply, "+WPI");
      this.#plan();
    });
  }

  /** A delayed item has come due, or a back-off is over. False: others have done what there was to do, as it seems; if not, it comes again. */
  async #takeIn({ subject, data, sequence, deliveries, at }: Pulled, since: number): Promise<boolean> {
    const { store, submitter, stream } = this.#parts;
    const key = lastToken(subject);
    if (data.length === 0) {
      // That it came is proof that its time has come, whatever this process's clock says.
      await lookAgain(store, key, at);
    } else {
      const item: KeyItem = { ...decodeItem(data, sequence), place: 0, dueAt: undefined };
      const front = item.attempts > 0;
      let isSecond = deliveries > 1 || front || this.#parts.mayBeSecond(at);
      let isGone = false;
      await submitter.arrive(key, { item, front }, async () => {
        const isLate = deliveries > 1 || this.#clock.monotonic() - since > LATE_MS;
        if (!isSecond && !isLate) return true;
        isSecond = false;
        if (await this.#isHere(key, item)) return false;
        // Whoever took it in removes it then; it may have ended since.
        isGone = isLate && (await store.js.at(stream, sequence)) === undefined;
        return !isGone;
      });
      if (isGone) return false;
    }
    await store.js.remove(stream, sequence);
    return true;
  }

  /** Whether somebody took the item in already: it may be that he died right after. */
  async #isHere(key: string, { unique, level }: KeyItem): Promise<boolean> {
    const { store } = this.#parts;
    const { state } = await store.read(key);
    if (state.items.some((item) => item.unique === unique)) return true;
    for await (const { item } of store.line(key, level, state.taken[level] ?? 0))
      if (item.unique === unique) return true;
    return false;
  }
}
