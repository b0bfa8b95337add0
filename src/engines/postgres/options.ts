import type { ClientConfig } from "pg";
import { InvalidInput } from "../../domain/errors.ts";
import { checkOptions, checkParameters, type OptionNames } from "../../domain/options.ts";
import type { Wake } from "../../wake/wake.ts";
import { KEYWORDS } from "./keywords.ts";

export interface StoreOptions {
  /** Where Baton keeps its tables. Default `baton`; made if it is not there. */
  readonly schema?: string | undefined;
  /** `synchronous_commit` of Baton's own transactions. Default: as the server, the database or the role has it. */
  readonly synchronousCommit?: SynchronousCommit | undefined;
  /** Wakes other processes in place of NOTIFY. Closed with the engine. */
  readonly wake?: Wake | undefined;
}

export interface PostgresOptions extends StoreOptions {
  /** A connection string, or the configuration of `pg.Client`. */
  readonly connection: string | ClientConfig;
}

const STORE_OPTIONS: OptionNames<StoreOptions> = { schema: true, synchronousCommit: true, wake: true };
const POSTGRES_OPTIONS: OptionNames<PostgresOptions> = { ...STORE_OPTIONS, connection: true };

export type SynchronousCommit = "on" | "off" | "local" | "remote_write" | "remote_apply";

export const DEFAULT_SCHEMA = "baton";
const SYNCHRONOUS: readonly string[] = [
  "on",
  "off",
  "local",
  "remote_write",
  "remote_apply",
] satisfies readonly SynchronousCommit[];
/** Those of `pg`, which ignores what it does not know: a slip in `schema` would go unnoticed. */
const PARAMETERS: readonly string[] = (
  "schema synchronous_commit host port user password db database " +
  "client_encoding ssl sslmode sslcert sslkey sslrootcert sslnegotiation uselibpqcompat " +
  "encoding application_name fallback_application_name options binary keepalives enableChannelBinding connect_timeout " +
  "connectionTimeoutMillis keepAlive keepAliveInitialDelayMillis query_timeout statement_timeout lock_timeout idle_in_transaction_session_timeout"
).split(" ");
/** Lower case, so that it means the same with quotes and without; and short, because the channel of wakes is named after it. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,39}$/;

/** `postgres://user:password@host:5432/database?schema=baton&synchronous_commit=on`; the rest of the parameters are those of `pg`. */
export function parsePostgresUrl(text: string): PostgresOptions {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InvalidInput("store", withoutPassword(text), "postgres://user:password@host:port/database");
  }
  const schema = url.searchParams.get("schema") ?? undefined;
  const synchronousCommit = url.searchParams.get("synchronous_commit") ?? undefined;
  url.searchParams.delete("schema");
  url.searchParams.delete("synchronous_commit");
  checkParameters(url.searchParams.keys(), PARAMETERS);
  return {
    connection: url.href,
    ...(schema === undefined ? {} : { schema }),
    ...(synchronousCommit === undefined ? {} : { synchronousCommit: checkSynchronous(synchronousCommit) }),
  };
}

/** Those of an engine on connections of its own. The configuration of `pg.Client` is its own affair. */
export function checkPostgresOptions(options: PostgresOptions): PostgresOptions {
  const { connection, synchronousCommit } = checkOptions(options, POSTGRES_OPTIONS);
  const isRight = typeof connection === "string" || (typeof connection === "object" && connection !== null);
  if (!isRight)
    throw new InvalidInput("connection", connection, "a connection string, or the configuration of pg.Client");
  if (synchronousCommit !== undefined) checkSynchronous(synchronousCommit, "synchronousCommit");
  return options;
}

/** Those of an engine on a pool of the application's. */
export function checkStoreOptions(options: StoreOptions): StoreOptions {
  const { synchronousCommit } = checkOptions(options, STORE_OPTIONS);
  if (synchronousCommit !== undefined) checkSynchronous(synchronousCommit, "synchronousCommit");
  return options;
}

export function checkSchema(schema: string): string {
  if (KEYWORDS.has(schema))
    throw new InvalidInput("schema", schema, `a word that PostgreSQL has not reserved, such as baton_${schema}`);
  if (SCHEMA.test(schema) && !schema.startsWith("pg_")) return schema;
  throw new InvalidInput(
    "schema",
    schema,
    "1 to 40 lower-case letters, digits or _, beginning with a letter, and not with pg_",
  );
}

function checkSynchronous(value: string, field = "synchronous_commit"): SynchronousCommit {
  if (isSynchronous(value)) return value;
  throw new InvalidInput(field, value, SYNCHRONOUS.join(", "));
}

function isSynchronous(value: string): value is SynchronousCommit {
  return SYNCHRONOUS.includes(value);
}

function withoutPassword(text: string): string {
  return text.replace(/:[^:@/]*@/, ":…@");
}
