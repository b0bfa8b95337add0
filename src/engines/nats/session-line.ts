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

export function readLine(data: Uint8Array): SessionLine {
  return ownJson<SessionLine>(textOfBytes(data));
}

export function isAlive({ data }: Stored): boolean {
  return readLine(data).gone !== true;
}

export function optionsOf({ lapse }: SessionLine): Pick<PutOptions, "rollup" | "ttlSeconds"> {
  return { rollup: true, ttlSeconds: Math.max(LEAST_TTL_SECONDS, Math.ceil((LONGEST_LAPSES * lapse) / 1_000)) };
}
