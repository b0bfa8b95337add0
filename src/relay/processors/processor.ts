import type { Outcome } from "../outcome.ts";
import type { RelayMessage } from "../settings.ts";

/** What handles messages: a function, an HTTP receiver, a command. */
export interface Processor {
  /** How many deliveries it can have at a time, however many slots there are. */
  readonly most: number;
  /** How many more it would take on now. */
  readonly room: number;
  /** Targets to which nothing is sent now, or only a probe. */
  readonly openCircuits: readonly string[];
  /** Of these, the targets that did not accept a connection when they were last tried. */
  readonly unreachable: readonly string[];
  /**
   * Handles one message. Never rejects. When the message's signal fires it comes to an end soon; what it answers then
   * is not looked at.
   */
  process(message: RelayMessage): Promise<Outcome>;
  /** Ends connections. Nothing is under way. */
  close(): Promise<void>;
}
