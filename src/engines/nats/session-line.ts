/** What a session says of itself, or somebody else says in its place: one message, with a time to live. */
import type { Stored } from "./api-replies.ts";
import type { PutOptions } from "./headers.ts";
import { ownJson, textOfBytes } from "./own-json.ts";

/** Left behind by a process that died while nobody watched, it vanishes in the end. */
const LONGEST_LAPSES = 20;
const LEAST_TTL_SECONDS = 60;

export interface SessionLine {
  readonly lapse: number;
  readonly beat: number;
  /** Somebody has said so, and frees its leases. */
  readonly gone?: true;
}

/** Throws when it is not one that Baton wrote. */
export function readLine(data: Uint8Array): SessionLine {
  const line = ownJson<SessionLine | null>(textOfBytes(data));
  if (typeof line?.lapse === "number" && typeof line.beat === "number") return line;
  throw new TypeError("it is no sign of life");
}

/** Nobody may take the leases of one whose last word cannot be read: it may live. Its next sign of life takes the place of that word. */
export function isAlive({ data }: Stored): boolean {
  try {
    return readLine(data).gone !== true;
  } catch {
    return true;
  }
}

export function optionsOf({ lapse }: SessionLine): Pick<PutOptions, "rollup" | "ttlSeconds"> {
  return { rollup: true, ttlSeconds: Math.max(LEAST_TTL_SECONDS, Math.ceil((LONGEST_LAPSES * lapse) / 1_000)) };
}
