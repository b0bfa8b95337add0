import { BatonError, OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import { QUEUE_GONE } from "./sql/functions.ts";

/** A failure of the server, or of the way to it. */
export class StoreFailure extends BatonError {}

/** Another transaction, which is still open, has submitted the same id. */
export class UndecidedId extends StoreFailure {}

const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";
const READ_ONLY_TRANSACTION = "25006";
const INSUFFICIENT_PRIVILEGE = "42501";
const DISK_FULL = "53100";
const TOO_MANY_CONNECTIONS = "53300";
const UNDEFINED_TABLE = "42P01";
const UNDEFINED_FUNCTION = "42883";
/** The type of the rows of a table that is gone. */
const UNDEFINED_OBJECT = "42704";
const INVALID_SCHEMA = "3F000";
const DATA_CORRUPTED = "XX001";
const INDEX_CORRUPTED = "XX002";
const INVALID_PASSWORD = "28P01";
const INVALID_AUTHORIZATION = "28000";
const NO_SUCH_DATABASE = "3D000";

/** Why a server that was reached does not let one in, and what to do. */
const TURNED_AWAY: ReadonlyMap<string, string> = new Map([
  [INVALID_PASSWORD, "Check the user and the password."],
  [INVALID_AUTHORIZATION, "Check the user and the password, and that pg_hba.conf lets them in from here."],
  [NO_SUCH_DATABASE, "Create the database, or name another."],
  [
    TOO_MANY_CONNECTIONS,
    "Raise max_connections, or close what is not needed; Baton takes two connections per process.",
  ],
]);

/** The server goes away, or has: what it was doing may have been done. */
const GOING_AWAY: ReadonlySet<string> = new Set(["57P01", "57P02", "57P03", "57P05"]);
const SQLSTATE = /^[0-9A-Z]{5}$/;

export function sqlState(error: unknown): string | undefined {
  if (!isError(error)) return undefined;
  const code: unknown = Reflect.get(error, "code");
  // Errors of the network have codes too, such as EPIPE, which looks like one of PostgreSQL's; only those of the server have a severity.
  return typeof code === "string" && SQLSTATE.test(code) && "severity" in error ? code : undefined;
}

/** The connection is of no use any more. */
export function isLostConnection(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined ? !(error instanceof BatonError) : GOING_AWAY.has(state) || state.startsWith("08");
}

/** Nothing was changed, and the same once more may well succeed. */
export function isWorthRepeating(error: unknown): boolean {
  const state = sqlState(error);
  return state === SERIALIZATION_FAILURE || state === DEADLOCK_DETECTED;
}

/** The number of the queue that was deleted. Nothing was changed. */
export function queueThatIsGone(error: unknown): number | undefined {
  if (sqlState(error) !== QUEUE_GONE) return undefined;
  const detail: unknown = isError(error) ? Reflect.get(error, "detail") : undefined;
  return Number(detail);
}

/** Of a statement that was sent. By SQLSTATE, never by text. */
export function describeFailure(error: unknown, where: string): BatonError {
  if (error instanceof BatonError) return error;
  const options: ErrorOptions = { cause: error };
  if (isLostConnection(error))
    return new OutcomeUnknown(`this call, because the connection to ${where} was lost`, options);
  const text = isError(error) ? error.message : String(error);
  switch (sqlState(error)) {
    case DISK_FULL:
      return new StoreFailure(
        "STORE_FULL",
        `The disk of ${where} is full. Nothing of this call was stored; what was accepted before is safe. Free some space and try again.`,
        options,
      );
    case LOCK_NOT_AVAILABLE:
      return new UndecidedId(
        "STORE_UNAVAILABLE",
        `An id of this call was submitted in a transaction that is still open at ${where}, so nobody knows yet whether it is a duplicate. ` +
          "Nothing of this call was stored. End that transaction, and try again.",
        options,
      );
    case READ_ONLY_TRANSACTION:
      return new StoreFailure(
        "STORE_READ_ONLY",
        `${where} cannot be written: it is a standby, or is set to be read only. Nothing was changed. Connect to the primary.`,
        options,
      );
    case INSUFFICIENT_PRIVILEGE:
      return new StoreFailure(
        "STORE_READ_ONLY",
        `The role may not do this at ${where} (${text}). Nothing was changed. Grant it what docs/engines/postgres.md lists.`,
        options,
      );
    case UNDEFINED_TABLE:
    case UNDEFINED_FUNCTION:
    case UNDEFINED_OBJECT:
    case INVALID_SCHEMA:
    case DATA_CORRUPTED:
    case INDEX_CORRUPTED:
      return new StoreFailure(
        "STORE_CORRUPT",
        `The schema of Baton at ${where} is damaged or gone (${text}). Nothing was changed. Restore it, or name another schema.`,
        options,
      );
    default:
      return new StoreFailure(
        "STORE_UNAVAILABLE",
        `${where} refused: ${text}. Nothing of this call was stored. Try again; if it repeats, look at the server's log.`,
        options,
      );
  }
}

/** Of a connection that could not be had: nothing was sent. */
export function describeConnectFailure(error: unknown, where: string): BatonError {
  if (error instanceof BatonError) return error;
  const state = sqlState(error);
  const turnedAway = state === undefined ? undefined : TURNED_AWAY.get(state);
  const isReached = turnedAway !== undefined || !isLostConnection(error);
  // The server let us in, and would not let us make or use the schema.
  if (isReached && turnedAway === undefined) return describeFailure(error, where);
  const text = isError(error) ? error.message : String(error);
  const said = isReached ? "refused the connection" : "cannot be reached";
  const advice = turnedAway ?? "Check that the server runs, and its address; then try again.";
  return new StoreFailure("STORE_UNAVAILABLE", `${where} ${said} (${text}). Nothing was done. ${advice}`, {
    cause: error,
  });
}
