import type { Pool } from "pg";
import type { Engine } from "../../engine/port.ts";
import { ownConnections, pooledConnections } from "./connections.ts";
import { PostgresEngine } from "./engine.ts";
import { parsePostgresUrl, type PostgresOptions, type StoreOptions, type SynchronousCommit } from "./options.ts";

export type { ForeignBell } from "./bell.ts";
export type { PostgresOptions, StoreOptions, SynchronousCommit };
export { postgresWake } from "./wake.ts";

/** Any number of processes on any number of machines, in a PostgreSQL database that you have. */
export async function postgresEngine(options: PostgresOptions): Promise<Engine> {
  return await PostgresEngine.open(ownConnections(options.connection), options);
}

/** On a pool that the application has, and keeps: it takes two of its connections, and closing the engine leaves it open. */
export async function postgresEngineOn(pool: Pool, options: StoreOptions = {}): Promise<Engine> {
  return await PostgresEngine.open(pooledConnections(pool), options);
}

/** `postgres://user:password@host:5432/database?schema=baton`. */
export async function openPostgresUrl(url: string): Promise<Engine> {
  return await postgresEngine(parsePostgresUrl(url));
}
