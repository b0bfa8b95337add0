/** The promises that are checked. The text is what a person reads; the name is what tests compare. */
export const RULES = {
  exclusive: "No two leases on one key at the same time",
  fences: "Fences of a key rise with every lease",
  stale: "Nothing is renewed or settled under a lease that is lost",
  effects: "After its local deadline a worker changes nothing, unless it stood still, and then it is refused",
  accounted: "Every accepted item is done, dead, taken back, or still waiting",
  completed: "An item is completed once, and does not run after that",
  ids: "The same id is the same item, given out as its receipt says",
  ordered:
    "Within a key and level, first come, first served; within a key, urgent first; what runs again keeps its place",
  repeats: "An item runs twice only where a fault explains it",
  alive: "No process ended by itself, and each ended when it was told to",
  drained: "Everything is done within a minute of the last fault",
  prompt: "What can run is begun within a second (99 of 100)",
  takeover: "What a lost worker held goes on within the lease and a second (99 of 100)",
} as const;

export type Rule = keyof typeof RULES;

export interface Violation {
  readonly rule: Rule;
  readonly key?: string;
  /** By the clock of the history. */
  readonly at: number;
  /** In words, with the times. */
  readonly text: string;
}
