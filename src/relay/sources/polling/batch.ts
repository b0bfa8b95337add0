/**
 * Requests that go out together. What is added in one turn shares a request; while as many requests as allowed are
 * under way, what comes meanwhile waits for the next. So one alone is sent at once, and many at a time cost few
 * requests.
 */
import { isError } from "../../../domain/realms.ts";
export interface BatchOptions<Entry> {
  /** How many entries one request may carry. */
  readonly most: number;
  /** How many requests may be under way. */
  readonly requests: number;
  /** Answers in the order of the entries: undefined for done, or why not. A rejection is every entry's. */
  readonly send: (entries: readonly Entry[]) => Promise<readonly (Error | undefined)[]>;
}

interface Added<Entry> {
  readonly entry: Entry;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class Batch<Entry> {
  readonly #options: BatchOptions<Entry>;
  #waiting: Added<Entry>[] = [];
  #underWay = 0;
  #isScheduled = false;

  constructor(options: BatchOptions<Entry>) {
    this.#options = options;
  }

  add(entry: Entry): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#underWay >= this.#options.requests) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      while (this.#waiting.length > 0 && this.#underWay < this.#options.requests) {
        const added = this.#waiting.slice(0, this.#options.most);
        this.#waiting = this.#waiting.slice(this.#options.most);
        void this.#send(added);
      }
    });
  }

  async #send(added: readonly Added<Entry>[]): Promise<void> {
    this.#underWay += 1;
    try {
      const results = await this.#options.send(added.map(({ entry }) => entry));
      for (const [index, { resolve, reject }] of added.entries()) {
        const error = results[index];
        if (error === undefined) resolve();
        else reject(error);
      }
    } catch (cause) {
      const error = isError(cause) ? cause : new Error(String(cause));
      for (const { reject } of added) reject(error);
    } finally {
      this.#underWay -= 1;
      if (this.#waiting.length > 0) this.#schedule();
    }
  }
}
