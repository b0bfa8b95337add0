/**
 * Messages on Baton's subjects that Baton did not write, or cannot read. Anybody who may publish can leave one. JetStream never changes a
 * message, so one that cannot be read always came in addition, and what was there before mostly lies below it.
 */
import { isError } from "../../domain/realms.ts";
import { BatonError } from "../../domain/errors.ts";
import type { Stored } from "./api-replies.ts";
import { textOf } from "./key-token.ts";
import type { QueueSubjects } from "./subjects.ts";

const SHOWN = 40;

/** How a key, or what is remembered of an item, stands cannot be known. */
export class Damaged extends BatonError {
  readonly subject: string;
  readonly sequence: number;

  constructor(what: string, stored: Stored, cause: unknown) {
    const reason = isError(cause) ? cause.message : String(cause);
    super(
      "STORE_CORRUPT",
      `${what} is damaged: message ${stored.sequence} on ${stored.subject} (${appearanceOf(stored)}) is not as Baton writes it (${reason}). ` +
        "Nothing was changed. Everything else goes on; baton doctor shows the message, and baton doctor --repair removes it.",
      { cause },
    );
    this.subject = stored.subject;
    this.sequence = stored.sequence;
  }
}

export function damagedKey(subjects: QueueSubjects, key: string, stored: Stored, cause: unknown): Damaged {
  return new Damaged(`Key ${JSON.stringify(textOf(key))} of queue ${subjects.queue}`, stored, cause);
}

/** Size, and what it begins with. */
export function appearanceOf({ data }: Stored): string {
  if (data.length === 0) return "empty";
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return `${data.length} ${data.length === 1 ? "byte" : "bytes"}, ${JSON.stringify(shown)}`;
}

/** Without those that cannot be read: they must not keep the others. */
export function readable<T, R>(all: readonly T[], read: (one: T) => R): R[] {
  return all.flatMap((one) => {
    try {
      return [read(one)];
    } catch {
      return [];
    }
  });
}
