/**
 * A key, or an id, as one token of a subject: base64 with an alphabet in the order of its characters, so that tokens sort
 * as the bytes of what they stand for. No wildcard or separator can come out of it.
 */
const STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const SORTED = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

const codes = Buffer.from(SORTED, "latin1");
const scratch = Buffer.alloc(3_072);
const out = Buffer.alloc(4_096);
const toSorted = translation(STANDARD, SORTED);
const toStandard = translation(SORTED, STANDARD);

/** Made by hand: every submission and every start needs one, and the three conversions that the library would take cost a microsecond and a half. */
export function tokenOf(text: string): string {
  const most = text.length * 3;
  if (most > scratch.length) return translate(Buffer.from(text, "utf8").toString("base64url"), toSorted);
  const length = scratch.write(text);
  let end = 0;
  for (let at = 0; at < length; at += 3) {
    const left = length - at;
    const bits =
      ((scratch[at] ?? 0) << 16) |
      ((left > 1 ? (scratch[at + 1] ?? 0) : 0) << 8) |
      (left > 2 ? (scratch[at + 2] ?? 0) : 0);
    out[end] = codes[bits >> 18] ?? 0;
    out[end + 1] = codes[(bits >> 12) & 63] ?? 0;
    out[end + 2] = codes[(bits >> 6) & 63] ?? 0;
    out[end + 3] = codes[bits & 63] ?? 0;
    end += left > 2 ? 4 : left + 1;
  }
  return out.toString("latin1", 0, end);
}

export function textOf(token: string): string {
  return Buffer.from(translate(token, toStandard), "base64url").toString("utf8");
}

function translation(from: string, to: string): Uint8Array {
  const table = new Uint8Array(128);
  for (let index = 0; index < from.length; index += 1) table[from.charCodeAt(index)] = to.charCodeAt(index);
  return table;
}

function translate(text: string, table: Uint8Array): string {
  const bytes = Buffer.from(text, "latin1");
  for (let index = 0; index < bytes.length; index += 1) bytes[index] = table[bytes[index] ?? 0] ?? 0;
  return bytes.toString("latin1");
}
