/**
 * JSON that Baton's own processes or the server wrote. Its shape is what the caller says: checking every message field
 * by field would cost more than the rest of the work on it.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function ownJson<T>(text: string): T {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(text) as T;
}

export function textOfBytes(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}
