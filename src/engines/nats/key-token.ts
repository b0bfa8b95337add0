/**
 * A key, or an id, as one token of a subject: base64 with an alphabet in the order of its characters, so that tokens sort
 * as the bytes of what they stand for. No wildcard or separator can come out of it.
 */
const STANDARD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const SORTED = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

const toSorted = translation(STANDARD, SORTED);
const toStandard = translation(SORTED, STANDARD);

export function tokenOf(text: string): string {
  return translate(Buffer.from(text, "utf8").toString("base64url"), toSorted);
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
