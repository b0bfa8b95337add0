/** A key on its way to whoever starts it. */
import { decodeState } from "./codec.ts";
import type { Pulled } from "./pulls.ts";
import type { Seen } from "./state.ts";
import { lastToken } from "./subjects.ts";

/** A ready key, and how it came here. */
export interface Token {
  readonly key: string;
  readonly seen: Seen;
  /** Undefined: it was freed by this process, and nobody has delivered it. */
  readonly delivery: Delivered | undefined;
}

export interface Delivered {
  readonly consumer: string;
  /** Where to acknowledge it. */
  readonly reply: string;
}

/** Undefined: it is not a message that Baton wrote. */
export function readToken({ consumer, data, reply, sequence, subject }: Pulled): Token | undefined {
  try {
    const seen = { sequence, state: decodeState(data, sequence) };
    return { key: lastToken(subject), seen, delivery: { consumer, reply } };
  } catch {
    return undefined;
  }
}
