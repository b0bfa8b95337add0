import { randomInt } from "node:crypto";
import { accessSync, constants, existsSync, type Stats, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import {
  describeStoreFailure,
  SQLITE_BUSY,
  SQLITE_CANTOPEN,
  SQLITE_IOERR,
  SQLITE_READONLY,
  sqliteCode,
  StoreFailure,
} from "./failure.ts";
import { isCurrent, makeStore } from "./schema.ts";

/** `full` survives power loss; `normal` a crash of every process; `off` is for tests. */
export type Synchronous = "full" | "normal" | "off";

/** Pages kept in memory. Bounded, so that a large backlog does not make a large process. */
const CACHE_KIB = 32 * 1024;
/** The log is written back when it has this many pages: rarely enough that a page is written back once for many changes. */
const CHECKPOINT_PAGES = 4_000;
/** The file is locked for a moment while another process creates it, or repairs it after a crash. */
const OPEN_WAIT_MS = 30_000;
/** How long to try for the write lock. Other processes hold it for a millisecond at a time. */
const LOCK_WAIT_MS = 30_000;

const pause = new Int32Array(new SharedArrayBuffer(4));

/** SQLite does not wait where waiting might block two for ever: while a file gets its log, and while a log is repaired. Then we do. */
export function openDatabase(file: string, synchronous: Synchronous): DatabaseSync {
  const giveUpAt = systemClock.monotonic() + OPEN_WAIT_MS;
  for (;;) {
    try {
      return tryToOpen(file, synchronous);
    } catch (error) {
      if (sqliteCode(error) !== SQLITE_BUSY || systemClock.monotonic() > giveUpAt)
        throw describeStoreFailure(error, file);
      Atomics.wait(pause, 0, 0, randomInt(2, 20));
    }
  }
}

function tryToOpen(file: string, synchronous: Synchronous): DatabaseSync {
  // Where there is no such file, or no way to it, SQLite says which.
  if (existsSync(file)) assertUsable(file, statSync(file));
  const db = new DatabaseSync(file, { timeout: OPEN_WAIT_MS });
  try {
    const mode = db.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"];
    if (mode !== "wal") {
      throw new StoreFailure(
        "STORE_UNAVAILABLE",
        `${file} cannot use a write-ahead log (its mode is ${String(mode)}). Put it on a local disk: network file systems do not work.`,
      );
    }
    // On macOS an ordinary fsync does not reach the disk.
    db.exec(`PRAGMA synchronous = ${synchronous}; PRAGMA fullfsync = 1; PRAGMA cache_size = -${CACHE_KIB};`);
    db.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}; PRAGMA temp_store = memory;`);
    makeStore(db, file);
    // From here on we wait for the lock ourselves, in finer steps than SQLite does.
    db.exec("PRAGMA busy_timeout = 0");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/**
 * Takes the write lock. Blocks this thread, which has nothing else to do. Between two tries it pauses for about half
 * a millisecond, as long as others hold the lock, and never twice for the same time, lest they stay in step.
 */
export function beginWrite(db: DatabaseSync, waitMs: number = LOCK_WAIT_MS): void {
  const giveUpAt = systemClock.monotonic() + waitMs;
  for (;;) {
    try {
      db.exec("BEGIN IMMEDIATE");
      return;
    } catch (error) {
      if (sqliteCode(error) !== SQLITE_BUSY || systemClock.monotonic() > giveUpAt) throw error;
      Atomics.wait(pause, 0, 0, randomInt(100, 1_100) / 1_000);
    }
  }
}

/** A commit that the disk did not confirm may still be found in the log after a crash. */
export function commit(db: DatabaseSync): void {
  try {
    db.exec("COMMIT");
  } catch (error) {
    if (sqliteCode(error) !== SQLITE_IOERR) throw error;
    const { code, message } = new OutcomeUnknown("the write: the disk did not confirm it", { cause: error });
    throw new StoreFailure(code, message, { cause: error });
  }
}

/** Writes the log back, if there is room and nobody reads it, so that the next write begins it anew. */
export function emptyLog(db: DatabaseSync): boolean {
  try {
    const result = db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get();
    return result?.["busy"] === 0 && result["log"] === result["checkpointed"];
  } catch {
    return false;
  }
}

function assertUsable(file: string, found: Stats): void {
  if (found.isDirectory()) {
    throw new StoreFailure("STORE_UNAVAILABLE", `${file} is a folder. Nothing was changed. Name a file in it.`);
  }
  assertWritable(file);
  if (found.size > 0) assertRecognised(file);
}

/** SQLite opens a file that it cannot write without a word, and says so at the first write. */
function assertWritable(file: string): void {
  try {
    // Never by opening it: closing any descriptor of the file would drop the locks that SQLite holds on it in this process.
    accessSync(file, constants.W_OK);
  } catch (error) {
    throw new StoreFailure(
      "STORE_READ_ONLY",
      `${file} cannot be written (${isError(error) ? error.message : String(error)}). Nothing was changed. Check its permissions.`,
      { cause: error },
    );
  }
}

/**
 * Looks at the file through a connection that cannot write. An ordinary one changes even what it then refuses: it
 * switches the journal, and at its close writes back the log of somebody else's crash.
 */
function assertRecognised(file: string): void {
  const db = new DatabaseSync(file, { readOnly: true, timeout: OPEN_WAIT_MS });
  try {
    // One look at one moment: between two, another process may have made of an empty file a store.
    db.exec("BEGIN");
    isCurrent(db, file);
  } catch (error) {
    const code = sqliteCode(error);
    // A crash left something behind that must be repaired before it can be read. `makeStore` looks again.
    if (code !== SQLITE_READONLY && code !== SQLITE_CANTOPEN) throw error;
  } finally {
    db.close();
  }
}
