import type { Readable } from "node:stream";

/** Nobody needs more to say how a delivery went. */
const MOST_BYTES = 64 * 1024;
/** The status has been said; what comes after it must not keep the delivery for ever. */
const LONGEST_MS = 5_000;

/**
 * The beginning of a body, as text. Undefined: it broke off or took too long. Unless it came to its end, the connection
 * is not used again. Listeners, because an iterator costs more than the rest of a small reply.
 */
export function readBody(body: Readable): Promise<string | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (whole: boolean): void => {
      clearTimeout(timer);
      body.destroy();
      resolve(whole ? Buffer.concat(chunks).subarray(0, MOST_BYTES).toString("utf8") : undefined);
    };
    const timer = setTimeout(() => finish(false), LONGEST_MS);
    body.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.byteLength;
      if (size >= MOST_BYTES) finish(true);
    });
    body.once("end", () => finish(true));
    // Also after the end: a destroyed stream may still have something to say, and nobody else listens.
    body.on("error", () => finish(false));
    body.once("close", () => finish(false));
  });
}
