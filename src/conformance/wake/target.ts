import type { WakeAdapter } from "../../wake/port.ts";

/** The carrier that is put to the test. What it cannot show is a text instead: the reason, reported with the cases left out for it. */
export interface WakeTarget {
  readonly name: string;
  /** One more connection to the same carrier, as another process would have it. The suite closes it. */
  open(): Promise<WakeAdapter>;
  /** Whether it has a place for hints, or why not. */
  readonly hints: true | string;
  /** Breaks the connections that are open, by a restart of the server or otherwise; resolves when new ones can be had. */
  readonly interrupt: (() => Promise<void>) | string;
  /** Lets 60 s pass, or says why not. */
  readonly age: (() => Promise<void>) | string;
  /** Names of cases with the reason for leaving them out. */
  readonly skip?: Readonly<Record<string, string>> | undefined;
}
