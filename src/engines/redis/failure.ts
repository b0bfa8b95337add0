/** What went wrong, by the word that Redis begins its errors with, or by the class of the client's own error. */
import { BatonError, type ErrorCode, OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import { redisLibrary } from "./client-library.ts";

/** Nothing was done, and in a moment it may go. */
const LATER = new Set(["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "READONLY", "NOREPLICAS"]);

/** What the program says when an operation is about a key that it cannot read. Nothing was written by that run. */
export const DAMAGED_KEY = "BATONDAMAGED";

/** What it says when the queue was deleted since it was declared. Nothing was written by that run. */
export const MISSING_QUEUE = "BATONMISSING";

/** The first word of an error that the server sent; undefined: it is not from the server. */
export function wordOf(error: unknown): string | undefined {
  const { ErrorReply } = redisLibrary() ?? {};
  if (ErrorReply === undefined || !(error instanceof ErrorReply)) return undefined;
  return /^[A-Z]+/.exec(error.message)?.[0] ?? "ERR";
}

export function isLater(error: unknown): boolean {
  const word = wordOf(error);
  return word !== undefined && LATER.has(word);
}

/** The command surely did not reach a server. */
export function isUnsent(error: unknown): boolean {
  const library = redisLibrary();
  if (library === undefined) return false;
  const { AbortError, ClientClosedError, ClientOfflineError, RootNodesUnavailableError } = library;
  return [AbortError, ClientClosedError, ClientOfflineError, RootNodesUnavailableError].some(
    (kind) => error instanceof kind,
  );
}

/** It may or may not have been done. */
export function isUnknown(error: unknown): boolean {
  return explain(error, "") instanceof OutcomeUnknown;
}

/**
 * What a user is told.
 *
 * @param looks it changes nothing: without a reply nothing was done, either
 */
export function explain(error: unknown, what: string, looks = false): BatonError {
  if (error instanceof BatonError) return error;
  const word = wordOf(error);
  if (word !== undefined) return explainReply(word, error, what);
  return looks || isUnsent(error) ? unavailable(error) : new OutcomeUnknown(what, { cause: error });
}

export function unavailable(cause: unknown): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    `Redis cannot be reached${reasonOf(cause)}. Nothing was done. The connection is tried again by itself; look after the server, then repeat the call.`,
    { cause },
  );
}

interface Meaning {
  readonly code: ErrorCode;
  /** What is told of it, around what the server said. */
  readonly tell: (said: string, what: string) => string;
}

const STRANGER: Meaning = {
  code: "STORE_UNAVAILABLE",
  tell: (said) =>
    `Redis does not know this user, or the password is wrong: ${said}. Nothing was done. Check both: redis://user:password@host.`,
};
const MOVED: Meaning = {
  code: "STORE_UNAVAILABLE",
  tell: (said) =>
    `This Redis server is part of a cluster: ${said}. Nothing was done. Pass a cluster client to redisEngineOn().`,
};
const OTHER: Meaning = {
  code: "STORE_UNAVAILABLE",
  tell: (said, what) =>
    `Redis refused ${what}: ${said}. Nothing was done. Repeat the call when the server is well again.`,
};
const MEANINGS: Readonly<Record<string, Meaning>> = {
  OOM: {
    code: "STORE_FULL",
    tell: (said, what) =>
      `Redis has no memory left: ${said}. ${what === "a submission" ? "The item was not accepted." : `It refused ${what}; nothing was done.`} ` +
      "Work goes on and frees memory; raise maxmemory, add workers, or keep finished items for a shorter time.",
  },
  MISCONF: {
    code: "STORE_FULL",
    tell: (said) => `Redis cannot write to its disk: ${said}. Nothing was done. Free space on it.`,
  },
  READONLY: {
    code: "STORE_READ_ONLY",
    tell: (said) =>
      `This Redis server is a replica: ${said}. Nothing was done. Connect to the primary, or by sentinels or a cluster client, which find it.`,
  },
  MOVED,
  CROSSSLOT: MOVED,
  ASK: MOVED,
  NOAUTH: STRANGER,
  WRONGPASS: STRANGER,
  NOPERM: {
    code: "STORE_UNAVAILABLE",
    tell: (said, what) =>
      `Redis does not allow ${what}: ${said}. Nothing was done. Give the user the permissions that the page about the Redis engine lists.`,
  },
  [DAMAGED_KEY]: {
    code: "STORE_CORRUPT",
    tell: (said) =>
      `The record of key ${JSON.stringify(/BATONDAMAGED (.*?)(?: script: .*)?$/s.exec(said)?.[1] ?? "")} is damaged: somebody else wrote into it. ` +
      "Nothing was done. Other keys go on. Its items are still in Redis; to get rid of the record, remove the key's field from the hash that ends in :keys " +
      "while no process of the queue runs, and submit them again.",
  },
  BATONBROKEN: {
    code: "STORE_CORRUPT",
    tell: (said) =>
      `The queue's records in Redis do not fit together: ${said}. Nothing was done. Something else has changed or evicted keys of Baton; restore a backup, or remove the queue's keys.`,
  },
};

function explainReply(word: string, cause: unknown, what: string): BatonError {
  const said = (isError(cause) ? cause.message : String(cause)).replace(/\.$/, "");
  const { code, tell } = MEANINGS[word] ?? OTHER;
  return new BatonError(code, tell(said, what), { cause });
}

function reasonOf(cause: unknown): string {
  return isError(cause) && cause.message !== "" ? ` (${cause.message})` : "";
}
