import { pause } from "../../domain/clock.ts";
import { BatonError } from "../../domain/errors.ts";
import type { RelayContext } from "../context.ts";

/** Between two tries to tell the source; doubles up to the longest. */
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Tells a source how a message ended, again and again while the source is out of reach and the message still ours.
 * Repeating is safe: a source that has heard it already has nothing left to change. Resolves with false when it could
 * not be told: the message comes again.
 */
export async function tellSource(
  context: RelayContext,
  source: string,
  doing: string,
  tellIt: () => Promise<void>,
  over: AbortSignal,
): Promise<boolean> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    try {
      await tellIt();
      return true;
    } catch (error) {
      context.tell({ type: "source-trouble", source, doing, error });
      if (over.aborted || isLoss(error)) return false;
    }
    await pause(context.clock, pauseMs);
    if (over.aborted) return false;
  }
}

/** The source answered, and the answer was no. */
function isLoss(error: unknown): boolean {
  return error instanceof BatonError && (error.code === "LEASE_LOST" || error.code === "CLOSED");
}
