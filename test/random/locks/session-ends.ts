import assert from "node:assert/strict";
import { type Clock, type Instant, pause } from "../../../src/domain/clock.ts";
import { within } from "./patiently.ts";

/** As much of a store as tells which sessions it has. */
interface SessionStore {
  readonly clock: Clock;
  readonly sessions: () => Promise<readonly string[]>;
  readonly leaseMs: number;
  readonly slackMs: number;
}

/** Whether the store has dropped a session: it tells nobody when it does. */
const LOOK_AGAIN_MS = 50;
/** For the looks themselves. */
const PATIENCE_MS = 20_000;

/** What is to be left of the sessions of a script: nothing. */
export class SessionEnds {
  readonly #store: SessionStore;
  /** Gone at once. */
  readonly #closed: string[] = [];
  /** Nobody renews them any more. By id, with the time by which a store has dropped them. */
  readonly #vanished = new Map<string, number>();

  constructor(store: SessionStore) {
    this.#store = store;
  }

  closed(id: string): void {
    this.#closed.push(id);
  }

  /** @param since its last sign of life */
  vanished(id: string, since: Instant): void {
    this.#vanished.set(id, since.monotonic + this.#store.leaseMs + this.#store.slackMs);
  }

  async check(): Promise<void> {
    const { clock, leaseMs, slackMs, sessions } = this.#store;
    const left = new Set(await sessions());
    assert.deepEqual(
      this.#closed.filter((id) => left.has(id)),
      [],
      "no session is left that was closed",
    );
    const longestMs = leaseMs + slackMs + PATIENCE_MS;
    await within(clock, longestMs, "the end of those that vanished", this.#untilDropped());
  }

  /**
   * One that vanished counts as over by its own clock first. The store may drop it later, because its clock began later and it may count in
   * seconds; and it tells nobody.
   */
  async #untilDropped(): Promise<void> {
    const { clock, sessions } = this.#store;
    for (;;) {
      const there = new Set(await sessions());
      const left = [...this.#vanished].filter(([id]) => there.has(id));
      if (left.length === 0) return;
      const late = left.filter(([, end]) => end <= clock.monotonic());
      assert.deepEqual(late, [], "no session is left that vanished");
      await pause(clock, LOOK_AGAIN_MS);
    }
  }
}
