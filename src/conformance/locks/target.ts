import type { Locks } from "../../locks/port.ts";

/** The locks that are put to the test. What a store cannot show is a text instead: the reason, reported with the cases left out for it. */
export interface LocksTarget {
  readonly name: string;
  /** One more connection to the same store, as another process would have it. The suite closes it. */
  open(): Promise<Locks>;
  /** Cuts a connection off as if its process had been killed: nothing gets out or in any more, and nothing is tidied up. */
  readonly crash: ((locks: Locks) => Promise<void>) | string;
  /** The next change that the connection makes reaches the store, and the reply does not come back. */
  readonly loseReply: ((locks: Locks) => void) | string;
  /** Stops the store and starts it again with its state kept, under the connections that are open. */
  readonly restart: (() => Promise<void>) | string;
  /** Names of cases with the reason for leaving them out. */
  readonly skip?: Readonly<Record<string, string>> | undefined;
  /** The lease that is let run out. Default 400, or the shortest that the store allows. */
  readonly leaseMs?: number | undefined;
  /** How much later than a lease a loss may be seen, on a busy machine. Default 5,000. */
  readonly slackMs?: number | undefined;
}
