import type { Stored } from "./api-replies.ts";
import { decodeState } from "./codec.ts";
import { readable } from "./damage.ts";
import type { Seen } from "./state.ts";
import { lastToken } from "./subjects.ts";

export interface Found extends Seen {
  readonly key: string;
}

/** How keys stand by the messages that were found. What Baton did not write, or cannot read, is left out: it must not keep the others. */
export function readRecords(stored: readonly Stored[]): readonly Found[] {
  return readable(stored, ({ subject, data, sequence }) => ({
    key: lastToken(subject),
    sequence,
    state: decodeState(data, sequence),
  }));
}
