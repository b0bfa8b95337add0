import { BatonError, type ErrorCode } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";

/** A failure of the file, in a form that crosses from the thread to the application. */
export class StoreFailure extends BatonError {}

export const SQLITE_BUSY = 5;
const SQLITE_LOCKED = 6;
export const SQLITE_READONLY = 8;
export const SQLITE_IOERR = 10;
const SQLITE_CORRUPT = 11;
export const SQLITE_FULL = 13;
export const SQLITE_CANTOPEN = 14;
const SQLITE_NOTADB = 26;

/** The primary result code, or undefined for an error that is not SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  if (!isError(error)) return undefined;
  const code: unknown = Reflect.get(error, "errcode");
  return typeof code === "number" ? code & 0xff : undefined;
}

/** The whole store failed, not one call: there is no use in trying the others. */
export function isOfTheStore(error: unknown): boolean {
  return error instanceof StoreFailure || meaningOf(error) !== undefined;
}

type Meaning = readonly [code: ErrorCode, tell: (file: string, said: string) => string];

const CORRUPT: Meaning = [
  "STORE_CORRUPT",
  (file, said) =>
    `${file} is damaged, or is no Baton store (${said}). Nothing was changed. Keep a copy, restore a backup, or name another file.`,
];
const LOCKED: Meaning = [
  "STORE_UNAVAILABLE",
  (file) =>
    `${file} stayed locked by another process. Nothing of this call was stored. Try again; if it repeats, look for a process that hangs.`,
];
const OTHER: Meaning = [
  "STORE_UNAVAILABLE",
  (file, said) => `The store ${file} failed: ${said}. Nothing of this call was stored.`,
];
/** What they mean, by number, never by text. With these the whole store failed. */
const MEANINGS: Readonly<Record<number, Meaning>> = {
  [SQLITE_BUSY]: LOCKED,
  [SQLITE_LOCKED]: LOCKED,
  [SQLITE_CORRUPT]: CORRUPT,
  [SQLITE_NOTADB]: CORRUPT,
  [SQLITE_FULL]: [
    "STORE_FULL",
    (file) =>
      `The disk of ${file} is full. Nothing of this call was stored; what was accepted before is safe. Free some space and try again.`,
  ],
  [SQLITE_READONLY]: [
    "STORE_READ_ONLY",
    (file) => `${file} cannot be written. Nothing was changed. Check the permissions of the file and of its folder.`,
  ],
  [SQLITE_CANTOPEN]: [
    "STORE_UNAVAILABLE",
    (file) => `${file} cannot be opened. Nothing was changed. Check that its folder exists and may be written.`,
  ],
  [SQLITE_IOERR]: [
    "STORE_UNAVAILABLE",
    (file, said) => `Reading or writing ${file} failed (${said}). Nothing of this call was stored. Check the disk.`,
  ],
};

function meaningOf(error: unknown): Meaning | undefined {
  const code = sqliteCode(error);
  return code === undefined ? undefined : MEANINGS[code];
}

export function describeStoreFailure(error: unknown, file: string): StoreFailure {
  if (error instanceof StoreFailure) return error;
  const [code, tell] = meaningOf(error) ?? OTHER;
  return new StoreFailure(code, tell(file, isError(error) ? error.message : String(error)), { cause: error });
}
