import type { DatabaseSync } from "node:sqlite";
import { StoreFailure } from "./failure.ts";

/** "Batn": tells a store of ours from any other SQLite file. */
const APPLICATION_ID = 0x4261746e;

/** Earlier ones were never released. Once one was, a later version must take its files over. */
export const SCHEMA_VERSION = 4;

/**
 * The shape follows one rule: the cost of a step must not grow with what waits. What a page of the file costs is
 * being written to the log when it changes, so steps must touch few pages, and the same ones again and again:
 * - `item` is written once, at the end of the table, and removed once, near its beginning.
 * - `key` has a row only for keys that have work, and that row says everything about the key.
 * - Items behind the head of a key form a chain per level, its ends kept in the key's row (`lanes`), its links in
 *   `link`. An index on (key, level, order) would touch a page of its own for each item once the backlog is large.
 * - The partial indexes hold only keys that are ready, leased or blocked, never the backlog.
 */
const SCHEMA = `
CREATE TABLE store (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
INSERT INTO store VALUES ('counter', 0);

CREATE TABLE queue (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  levels TEXT NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,
  waiting TEXT NOT NULL,
  delayed INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE key (
  id INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  name TEXT NOT NULL,
  state INTEGER NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,
  head INTEGER NOT NULL DEFAULT 0,
  level INTEGER NOT NULL DEFAULT 0,
  place INTEGER NOT NULL DEFAULT 0,
  ready_at INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0,
  at INTEGER NOT NULL DEFAULT 0,
  granted INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  held INTEGER NOT NULL DEFAULT 0,
  cancel INTEGER NOT NULL DEFAULT 0,
  since INTEGER NOT NULL DEFAULT 0,
  worker TEXT,
  progress REAL,
  waiting INTEGER NOT NULL DEFAULT 0,
  delayed INTEGER NOT NULL DEFAULT 0,
  lanes TEXT,
  gaps INTEGER NOT NULL DEFAULT 0,
  wanted INTEGER NOT NULL DEFAULT 0,
  covered INTEGER NOT NULL DEFAULT 1,
  marked TEXT,
  alone INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX key_name ON key (queue, name);
CREATE INDEX key_ready ON key (queue, level, place) WHERE state = 1 AND paused = 0;
CREATE INDEX key_due ON key (state, at) WHERE state >= 2;
CREATE INDEX key_wanted ON key (at) WHERE wanted = 1 AND state < 2;

CREATE TABLE item (
  seq INTEGER PRIMARY KEY,
  key INTEGER NOT NULL,
  level INTEGER NOT NULL,
  id TEXT,
  type TEXT,
  body ANY NOT NULL,
  headers TEXT,
  submitted INTEGER NOT NULL,
  keep INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  due INTEGER NOT NULL DEFAULT 0,
  tried TEXT,
  losses INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE link (seq INTEGER PRIMARY KEY, next INTEGER NOT NULL) STRICT;

CREATE TABLE delayed (seq INTEGER PRIMARY KEY, key INTEGER NOT NULL, due INTEGER NOT NULL, front INTEGER NOT NULL) STRICT;
CREATE INDEX delayed_due ON delayed (due);
CREATE INDEX delayed_key ON delayed (key);

CREATE TABLE receipt (
  queue INTEGER NOT NULL,
  id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  key TEXT NOT NULL,
  level INTEGER NOT NULL,
  submitted INTEGER NOT NULL,
  state TEXT,
  ended INTEGER,
  expires INTEGER,
  attempt INTEGER,
  result_type TEXT,
  result ANY,
  result_missing TEXT,
  failure TEXT,
  tried TEXT,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipt_expires ON receipt (expires) WHERE expires IS NOT NULL;

CREATE TABLE dead (
  place INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL UNIQUE,
  queue INTEGER NOT NULL,
  key TEXT NOT NULL,
  level INTEGER NOT NULL,
  id TEXT,
  type TEXT,
  body ANY NOT NULL,
  headers TEXT,
  submitted INTEGER NOT NULL,
  keep INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  failure TEXT NOT NULL,
  at INTEGER NOT NULL,
  tried TEXT
) STRICT;
CREATE INDEX dead_queue ON dead (queue, place);
CREATE INDEX dead_id ON dead (queue, id) WHERE id IS NOT NULL;

CREATE TABLE cell (
  name TEXT PRIMARY KEY,
  version INTEGER NOT NULL,
  value TEXT NOT NULL,
  written INTEGER NOT NULL,
  expires INTEGER,
  until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX cell_expires ON cell (expires) WHERE expires IS NOT NULL;

PRAGMA application_id = ${APPLICATION_ID};
PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** Makes a store of an empty file. Safe with several processes starting at once: whoever comes second finds the work done. */
export function makeStore(db: DatabaseSync, file: string): void {
  if (versionOf(db) === SCHEMA_VERSION && isOurs(db)) return;
  db.exec("BEGIN IMMEDIATE");
  try {
    if (!isCurrent(db, file)) db.exec(SCHEMA);
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}

/** Whether it is a store; not if it is empty. Refuses what is not ours, and what another version made. Changes nothing. Wants a transaction. */
export function isCurrent(db: DatabaseSync, file: string): boolean {
  const version = versionOf(db);
  if (!isOurs(db)) {
    if (isEmpty(db)) return false;
    throw new StoreFailure(
      "STORE_CORRUPT",
      `${file} is an SQLite database, but not one of Baton's. Nothing was changed. Name another file.`,
    );
  }
  if (version === SCHEMA_VERSION) return true;
  const schemas = `schema ${version}; this one knows ${SCHEMA_VERSION}`;
  if (version > SCHEMA_VERSION) {
    throw new StoreFailure(
      "STORE_TOO_NEW",
      `${file} was written by a newer version of Baton (${schemas}). Nothing was changed. Upgrade batonq in this application.`,
    );
  }
  throw new StoreFailure(
    "STORE_TOO_OLD",
    `${file} was written by a version of Baton from before its first release (${schemas}). Nothing was changed. ` +
      "Let that version work it off, and name another file.",
  );
}

function versionOf(db: DatabaseSync): number {
  return Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);
}

function isOurs(db: DatabaseSync): boolean {
  return db.prepare("PRAGMA application_id").get()?.["application_id"] === APPLICATION_ID;
}

function isEmpty(db: DatabaseSync): boolean {
  return db.prepare("SELECT count(*) AS n FROM sqlite_schema").get()?.["n"] === 0;
}
