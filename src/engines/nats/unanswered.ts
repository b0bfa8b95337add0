import { Closed } from "../../domain/errors.ts";
import type { Wire } from "./wire.ts";

/**
 * Sends what has no reply, so that nobody waits for it: hints, and what goes back to the server. It is often sent at the end of
 * something else, maybe after the connection was closed. Then it is not sent, and what it comes after is no less true.
 */
export function sendUnanswered(wire: Wire, subject: string, data: string): void {
  try {
    wire.publish(subject, data);
  } catch (error) {
    if (!(error instanceof Closed)) throw error;
  }
}
