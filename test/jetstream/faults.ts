/** What goes wrong, and when, is decided here and nowhere else: drawn at random or written down by a test. */
import type { Random } from "../kit/random.ts";

export type Way = "to server" | "from server";

export interface Passing {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
}

/** Of one connection. */
export interface LineFaults {
  /** How long this takes. What is sent later in the same direction never arrives earlier. */
  delayMs(way: Way, passing: Passing): number;
  /** Whether it never arrives, although the connection holds. */
  loses(way: Way, passing: Passing): boolean;
}

/** Of the server. */
export interface ServerFaults {
  /** By how many changes the copy is behind that answers this direct get; Infinity for all that is remembered. */
  changesBehind(stream: string): number;
  /** By how many milliseconds, likewise; the larger of the two counts. */
  msBehind(stream: string): number;
  /** How late a schedule fires or a message expires: the real one looks at intervals. */
  lateMs(): number;
}

export const CALM_LINE: LineFaults = { delayMs: () => 0, loses: () => false };
export const CALM_SERVER: ServerFaults = { changesBehind: () => 0, msBehind: () => 0, lateMs: () => 0 };

export interface LineRates {
  readonly slowestMs: number;
  readonly requestLost: number;
  readonly replyLost: number;
}

export function randomLine(random: Random, rates: LineRates): LineFaults {
  return {
    delayMs: () => random.next() * rates.slowestMs,
    loses: (way) => random.chance(way === "to server" ? rates.requestLost : rates.replyLost),
  };
}

export interface ServerRates {
  /** Of direct gets that are answered by a copy. */
  readonly stale: number;
  readonly mostChangesBehind: number;
  readonly latestMs: number;
}

export function randomServer(random: Random, rates: ServerRates): ServerFaults {
  return {
    changesBehind: () => (random.chance(rates.stale) ? random.between(0, rates.mostChangesBehind) : 0),
    msBehind: () => 0,
    lateMs: () => random.next() * rates.latestMs,
  };
}
