/**
 * PostgreSQL's binary form of arrays. As text, each element of an array would be escaped here and unescaped there, and bytes would travel
 * as twice as many digits; a batch of items costs a third of that in this form.
 */
const BYTEA = 17;
const INT8 = 20;
const INT4 = 23;
const TEXT = 25;

const HEADER_BYTES = 20;

export function texts(values: readonly (string | null)[]): Buffer {
  return array(
    TEXT,
    values,
    (value) => Buffer.byteLength(value),
    (buffer, value, at) => buffer.write(value, at, "utf8"),
  );
}

export function byteas(values: readonly (Uint8Array | null)[]): Buffer {
  return array(
    BYTEA,
    values,
    ({ byteLength }) => byteLength,
    (buffer, value, at) => buffer.set(value, at),
  );
}

export function integers(values: readonly number[]): Buffer {
  return array(
    INT4,
    values,
    () => 4,
    (buffer, value, at) => buffer.writeInt32BE(value, at),
  );
}

/** Whole numbers up to 2^53. */
export function bigints(values: readonly (number | null)[]): Buffer {
  return array(
    INT8,
    values,
    () => 8,
    (buffer, value, at) => {
      buffer.writeInt32BE(Math.floor(value / 0x1_0000_0000), at);
      buffer.writeUInt32BE(value % 0x1_0000_0000, at + 4);
    },
  );
}

/** One dimension, counted from 1. That there may be nulls is always said: nobody looks at it but the reader, element by element. */
function array<T>(
  type: number,
  values: readonly (T | null)[],
  sizeOf: (value: T) => number,
  write: (buffer: Buffer, value: T, at: number) => void,
): Buffer {
  const sizes = values.map((value) => (value === null ? -1 : sizeOf(value)));
  const bytes = sizes.reduce((sum, size) => sum + 4 + Math.max(0, size), HEADER_BYTES);
  const buffer = Buffer.allocUnsafe(values.length === 0 ? 12 : bytes);
  buffer.writeInt32BE(values.length === 0 ? 0 : 1, 0);
  buffer.writeInt32BE(1, 4);
  buffer.writeInt32BE(type, 8);
  if (values.length === 0) return buffer;
  buffer.writeInt32BE(values.length, 12);
  buffer.writeInt32BE(1, 16);
  let at = HEADER_BYTES;
  for (const [index, value] of values.entries()) {
    const size = sizes[index] ?? -1;
    at = buffer.writeInt32BE(size, at);
    if (value !== null) write(buffer, value, at);
    at += Math.max(0, size);
  }
  return buffer;
}
