import type { Outcome } from "../outcome.ts";
import type { RelayMessage } from "../settings.ts";

/** What handles messages: a function, an HTTP receiver, a command. */
export interface Processor {
  /** How many deliveries it would take on now, however many slots there are. Infinity: it does not mind. */
  readonly room: number;
  /** Handles one message. Never rejects. When the message's signal fires it comes to an end soon; what it answers then is not looked at. */
  process(message: RelayMessage): Promise<Outcome>;
  /** Ends connections. Nothing is under way. */
  close(): Promise<void>;
}
