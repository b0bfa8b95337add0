/**
 * The seam between those who wait for a store and what can tell them that something changed there. A wake is a hint: it may be lost,
 * late or doubled, and correctness never depends on one, because whoever waits also looks by itself now and then.
 *
 * An adapter carries short texts between processes over something that can publish and subscribe, and knows nothing of
 * queues. `Wake` makes signals of them, once for all adapters.
 */
export interface WakeAdapter {
  /** What carries the wakes: nats, redis, postgres, memory. */
  readonly name: string;

  /** Sends each text to all who listen to its channel, this process included. Rejects when it surely or possibly did not. */
  publish(messages: readonly WakeMessage[]): Promise<void>;

  /**
   * Resolves when messages surely arrive. `heard` is called for each, `missed` when some may have been lost on the way, for
   * instance after a reconnect. Listening goes on through reconnects until the function that it resolves with is called.
   * Rejects when it cannot begin; it is then asked again later.
   *
   * `deaf` is called as soon as the adapter knows that nothing arrives any more, and `missed` when messages arrive again: between the two
   * stores look for work by themselves, as often as they do without a carrier. An adapter that cannot know it never calls it.
   */
  listen(
    channel: string,
    heard: (text: string) => void,
    missed: () => void,
    deaf?: () => void,
  ): Promise<() => Promise<void>>;

  /** Counters that all processes share. Undefined: there is no place for them here, and everybody wakes. */
  readonly hints: HintStore | undefined;

  /**
   * Ends all listening and whatever is under way, attempts to connect included, and waits for nothing that may not come. What the
   * application brought along stays open. Functions that `listen` resolved with may still be called.
   */
  close(): Promise<void>;
}

export interface WakeMessage {
  /** Letters, digits, `-`, `_` and dots. */
  readonly channel: string;
  /** At most `LONGEST_TEXT` bytes. */
  readonly text: string;
}

/** A NOTIFY of PostgreSQL carries a little less than 8,000 bytes, and no other carrier less than that. */
export const LONGEST_TEXT = 6_000;

/** Budgets against the herd: so many of those who hear of new work should go and look for it. */
export interface HintStore {
  /**
   * Adds to a budget, which vanishes 60 s after the last change. Tries at most 5 times more when another process was faster, and
   * rejects when that was not enough: then those who hear of the work are told not to ask for the budget.
   * @param name letters, digits, `-`, `_` and dots
   */
  add(name: string, count: number): Promise<void>;

  /**
   * Takes one from a budget. `taken`, and `missing` when there is no budget: wake. `empty`: sleep on. `conflict`, when 5 more tries met a
   * faster process each time: skip this one.
   */
  take(name: string): Promise<HintResult>;
}

export type HintResult = "taken" | "missing" | "empty" | "conflict";

/** How long a budget lives after its last change. */
export const HINT_LIFE_MS = 60_000;
/** How often a change of a budget is tried again after another process was faster. */
export const HINT_RETRIES = 5;
