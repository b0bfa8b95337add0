/**
 * Fences are numbers of JavaScript, which are exact up to 2^53, and a sequence stands for several of them: sequences may go up to 2^47.
 *
 * A stream that is made anew begins beyond every sequence of the one before, counted from the clock, so that fences rise. Within one stream
 * sequences go up by one with each message: the room is used up by remaking streams late, not by work.
 */
import { BatonError } from "../../domain/errors.ts";
import { FENCES_PER_MESSAGE } from "./state.ts";

/**
 * A stream that is made anew is beyond the one before, unless that wrote this many messages per millisecond of its life. More would leave too
 * little room.
 */
const SEQUENCES_PER_MS = 64;
/** Counted from here there is room for new streams until the year 2075. */
const EPOCH_MS = Date.UTC(2020, 0, 1);
/** Stores that were begun before that counted from 1970, and go on so, or their fences would fall: their first sequences are beyond this, until 2039. */
const OLD_FIRST = Date.UTC(2025, 0, 1) * SEQUENCES_PER_MS;
/** Beyond this a lease's fences would not be exact. */
export const LAST_SEQUENCE: number = Math.floor(Number.MAX_SAFE_INTEGER / FENCES_PER_MESSAGE) - 1;
/** From here on nothing new is accepted: what waits needs sequences until it is done. Hours, at the most messages that a server takes. */
const CLOSING_SEQUENCE = LAST_SEQUENCE - 2 ** 30;

/** @param sharedFirst the first sequence that the stream that all queues share was made with; 0 if it is not there yet */
export function firstSequence(nowMs: number, highest: number, sharedFirst: number): number {
  const epochMs = sharedFirst >= OLD_FIRST ? 0 : EPOCH_MS;
  const first = Math.max(Math.floor(Math.max(0, nowMs - epochMs)) * SEQUENCES_PER_MS, highest + 1);
  if (first >= CLOSING_SEQUENCE) throw noRoom();
  return first;
}

/** Whether an item may still be accepted, as far as this process has seen. */
export function isNearlyOut(highest: number): boolean {
  return highest >= CLOSING_SEQUENCE;
}

/** The first fence of a message. Throws rather than give one that another lease may have, too. */
export function fenceOf(sequence: number): number {
  if (sequence > LAST_SEQUENCE) throw noRoom();
  return sequence * FENCES_PER_MESSAGE;
}

export function noRoom(): BatonError {
  return new BatonError(
    "STORE_FULL",
    "There are no more fences in this store: its sequences have come near 2^47, and beyond that fences would not be exact. Nothing was written. " +
      "What was accepted before is still worked off. Go on with another prefix (?prefix=…), and add 2^53 to its fences wherever they are checked.",
  );
}
