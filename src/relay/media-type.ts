/** The media type of content that nobody has named one for. */

/**
 * JSON objects and lists are known by their form. A bare number or text is JSON, too, but was hardly meant as such, and
 * many receivers refuse one that is called JSON. Undefined: bytes of an unknown kind.
 */
export function guessedType(data: Uint8Array): "application/json" | undefined {
  const first = data.find((byte) => !BLANKS.has(byte));
  if (first !== BRACE && first !== BRACKET) return undefined;
  try {
    JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8"));
    return "application/json";
  } catch {
    return undefined;
  }
}

const BRACE = 0x7b;
const BRACKET = 0x5b;
/** Space, tab and line breaks, which may stand before JSON. */
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);
