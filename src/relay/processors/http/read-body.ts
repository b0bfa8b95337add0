import type { Readable } from "node:stream";

/** Nobody needs more to say how a delivery went. */
const MOST_BYTES = 64 * 1024;
/** The status has been said; what comes after it must not keep the delivery for ever. */
const LONGEST_MS = 5_000;

/** How much of a body there was to read. */
export interface ReadBody {
  readonly text: string;
  /** Nothing is missing: it came to its end, in time, and was not too long. */
  readonly isWhole: boolean;
}

/**
 * The beginning of a body, as text. Unless it came to its end, the connection is not used again. Listeners, because an
 * iterator costs more than the rest of a small reply.
 */
export function readBody(body: Readable): Promise<ReadBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (isWhole: boolean): void => {
      clearTimeout(timer);
      body.destroy();
      resolve({ text: Buffer.concat(chunks).subarray(0, MOST_BYTES).toString("utf8"), isWhole });
    };
    const timer = setTimeout(() => finish(false), LONGEST_MS);
    body.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.byteLength;
      if (size > MOST_BYTES) finish(false);
    });
    body.once("end", () => finish(true));
    // Also after the end: a destroyed stream may still have something to say, and nobody else listens.
    body.on("error", () => finish(false));
    body.once("close", () => finish(false));
  });
}
