import { BatonError } from "../domain/errors.ts";

/** How soon those who wait ask again when the store cannot be reached. */
export const OUTAGE_PAUSE_MS = 250;

/** The store may come back: whoever has time waits for it. */
export function isOutage(error: unknown): boolean {
  return error instanceof BatonError && (error.code === "STORE_UNAVAILABLE" || error.code === "OUTCOME_UNKNOWN");
}
