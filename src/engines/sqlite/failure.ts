import { BatonError } from "../../domain/errors.ts";
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

const WHOLE_STORE: ReadonlySet<number | undefined> = new Set([
  SQLITE_BUSY,
  SQLITE_LOCKED,
  SQLITE_READONLY,
  SQLITE_IOERR,
  SQLITE_CORRUPT,
  SQLITE_FULL,
  SQLITE_CANTOPEN,
  SQLITE_NOTADB,
]);

/** The primary result code, or undefined for an error that is not SQLite's. */
export function sqliteCode(error: unknown): number | undefined {
  if (!isError(error)) return undefined;
  const code: unknown = Reflect.get(error, "errcode");
  return typeof code === "number" ? code & 0xff : undefined;
}

/** The whole store failed, not one call: there is no use in trying the others. */
export function isOfTheStore(error: unknown): boolean {
  return error instanceof StoreFailure || WHOLE_STORE.has(sqliteCode(error));
}

/** By number, never by text. */
export function describeStoreFailure(error: unknown, file: string): StoreFailure {
  if (error instanceof StoreFailure) return error;
  const text = isError(error) ? error.message : String(error);
  const options: ErrorOptions = { cause: error };
  switch (sqliteCode(error)) {
    case SQLITE_FULL:
      return new StoreFailure(
        "STORE_FULL",
        `The disk of ${file} is full. Nothing of this call was stored; what was accepted before is safe. Free some space and try again.`,
        options,
      );
    case SQLITE_READONLY:
      return new StoreFailure(
        "STORE_READ_ONLY",
        `${file} cannot be written. Nothing was changed. Check the permissions of the file and of its folder.`,
        options,
      );
    case SQLITE_CANTOPEN:
      return new StoreFailure(
        "STORE_UNAVAILABLE",
        `${file} cannot be opened. Nothing was changed. Check that its folder exists and may be written.`,
        options,
      );
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return new StoreFailure(
        "STORE_CORRUPT",
        `${file} is damaged, or is no Baton store (${text}). Nothing was changed. Keep a copy, restore a backup, or name another file.`,
        options,
      );
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return new StoreFailure(
        "STORE_UNAVAILABLE",
        `${file} stayed locked by another process. Nothing of this call was stored. Try again; if it repeats, look for a process that hangs.`,
        options,
      );
    case SQLITE_IOERR:
      return new StoreFailure(
        "STORE_UNAVAILABLE",
        `Reading or writing ${file} failed (${text}). Nothing of this call was stored. Check the disk.`,
        options,
      );
    default:
      return new StoreFailure(
        "STORE_UNAVAILABLE",
        `The store ${file} failed: ${text}. Nothing of this call was stored.`,
        options,
      );
  }
}
