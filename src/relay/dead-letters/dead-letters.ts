import { type FileHandle, open } from "node:fs/promises";
import { type Baton, connect } from "../../index.ts";
import type { DeadLetterSettings } from "../settings.ts";
import type { SourceMessage } from "../source.ts";

/** A message that is given up, and why. */
export interface DeadLetter {
  readonly source: string;
  readonly message: SourceMessage;
  readonly key: string | undefined;
  readonly attempt: number;
  readonly reason: string;
}

/** Where given-up messages of one source are kept, outside of it. */
export interface DeadLetterStore {
  /** For people: where to look. */
  readonly place: string;
  /** When it resolves, the letter is safe, and the message may be forgotten by its source. */
  keep(letter: DeadLetter): Promise<void>;
  close(): Promise<void>;
}

/** Undefined: the source keeps its own, or nobody does. */
export async function openDeadLetters(settings: DeadLetterSettings): Promise<DeadLetterStore | undefined> {
  switch (settings.to) {
    case "queue":
      return queueStore(await connect(settings.store), settings.queue);
    case "file":
      // For this user only: payloads are nobody else's business.
      return fileStore(await open(settings.path, "a", 0o600), settings.path);
    case "source":
    case "drop":
      return undefined;
  }
}

/** What sources carry at most, and more than the 256 KiB that queues take by default. */
const LARGEST_BYTES = 10 * 1024 * 1024;
/** Items carry up to 8 KiB of headers: attributes that do not fit beside ours are left out. */
const MOST_ATTRIBUTE_BYTES = 6 * 1024;

/**
 * An item per letter, to be worked off or looked at like any other. Its id makes sure that a letter that is kept twice
 * is one.
 */
function queueStore(baton: Baton, name: string): DeadLetterStore {
  const queue = baton.queue(name, { limits: { payload: LARGEST_BYTES } });
  return {
    place: `queue ${name}`,
    async keep({ source, message, key, attempt, reason }) {
      const { data, contentType = "application/octet-stream", attributes } = message;
      const fits = Buffer.byteLength(JSON.stringify(attributes)) <= MOST_ATTRIBUTE_BYTES;
      const id = `${source}/${message.id}`;
      await queue.submit(key ?? id, data, {
        id,
        type: contentType,
        headers: {
          ...(fits ? attributes : {}),
          "baton-source": source,
          "baton-id": message.id,
          "baton-attempt": String(attempt),
          "baton-reason": reason,
        },
      });
    },
    close: () => baton.close(),
  };
}

/** One line of JSON per letter, on the disk before the message is forgotten. */
function fileStore(file: FileHandle, path: string): DeadLetterStore {
  // One after the other: a long line is more than one write.
  let last: Promise<void> = Promise.resolve();
  const append = async (line: string): Promise<void> => {
    await file.appendFile(line);
    await file.datasync();
  };
  return {
    place: `file ${path}`,
    async keep({ source, message, key, attempt, reason }) {
      const { id, contentType, attributes, sentAt, data } = message;
      const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
      const letter = {
        at: new Date().toISOString(),
        source,
        id,
        key,
        attempt,
        reason,
        contentType,
        attributes,
        sentAt,
      };
      const line = `${JSON.stringify({ ...letter, data: bytes.toString("base64") })}\n`;
      const written = last.then(() => append(line));
      last = written.catch(() => undefined);
      await written;
    },
    close: () => file.close(),
  };
}
