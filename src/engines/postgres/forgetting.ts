import type { Clock } from "../../domain/clock.ts";
import type { Link } from "./link.ts";
import { integer } from "./rows.ts";

const EVERY_MS = 1_000;
/** When there is more to forget than fits into one transaction. */
const MORE_MS = 50;
const AT_A_TIME = 1_000;

/** Receipts, and cells, whose time is over. */
export class Forgetting {
  readonly #link: Link;
  readonly #clock: Clock;
  #nextAt = 0;

  constructor(link: Link, clock: Clock) {
    this.#link = link;
    this.#clock = clock;
  }

  async forgetNowAndThen(): Promise<void> {
    const now = this.#clock.monotonic();
    if (now < this.#nextAt) return;
    this.#nextAt = now + EVERY_MS;
    try {
      const [row] = await this.#link.call("forget", AT_A_TIME);
      if (row !== undefined && integer(row, 0) === AT_A_TIME) this.#nextAt = this.#clock.monotonic() + MORE_MS;
    } catch {
      // What is not forgotten now is forgotten later.
    }
  }
}
