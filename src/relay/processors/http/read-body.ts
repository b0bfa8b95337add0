import type { Readable } from "node:stream";

/** Nobody needs more to say how a delivery went. */
const MOST_BYTES = 64 * 1024;
/** The status has been said; what comes after it must not keep the delivery for ever. */
const LONGEST_MS = 5_000;

/** The beginning of a body, as text. Undefined: it broke off or took too long. In each of these cases the connection is not used again. */
export async function readBody(body: Readable): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  // Destroying the stream ends the loop below, with or without an error.
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    body.destroy();
  }, LONGEST_MS);
  try {
    for await (const chunk of body) {
      if (!(chunk instanceof Uint8Array)) continue;
      chunks.push(Buffer.from(chunk));
      size += chunk.byteLength;
      if (size >= MOST_BYTES) break;
    }
    return late ? undefined : Buffer.concat(chunks).subarray(0, MOST_BYTES).toString("utf8");
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    // Leaving the loop early has destroyed it; one that ended has nothing left.
    body.on("error", () => undefined);
    body.destroy();
  }
}
