/** The text, or as much of its beginning as fits into so many bytes of UTF-8, with a mark behind it. Characters stay whole. */
export function cutBytes(text: string, longest: number): string {
  // A UTF-16 unit takes at most three bytes.
  if (text.length * 3 <= longest || Buffer.byteLength(text) <= longest) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(longest));
  return `${text.slice(0, read)}…`;
}

/** Both ends of the text: what was said first, and what was said last, which of a long message is often the reason. */
export function cutMiddle(text: string, longest: number): string {
  if (text.length * 3 <= longest || Buffer.byteLength(text) <= longest) return text;
  const half = Math.floor(longest / 2);
  return `${cutBytes(text, half)}${lastBytes(text, half)}`;
}

function lastBytes(text: string, longest: number): string {
  const bytes = Buffer.from(text);
  let from = Math.max(0, bytes.length - longest);
  // In the middle of a character: on to the next.
  while (from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return bytes.toString("utf8", from);
}
