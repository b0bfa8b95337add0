import "../../domain/node-version.ts";
import type { Engine } from "../../engine/port.ts";
import type { Wake } from "../../wake/wake.ts";
import type { Synchronous } from "./database.ts";
import { SqliteEngine } from "./engine.ts";
import { checkSqliteOptions, parseSqliteUrl, type SqliteOptions } from "./options.ts";

export type { SqliteOptions, Synchronous };

/** One file, any number of processes on one machine. */
export async function sqliteEngine(options: SqliteOptions): Promise<Engine> {
  const { file, synchronous, wake } = checkSqliteOptions(options);
  return await SqliteEngine.open({ file, synchronous }, wake);
}

/** `sqlite:work.db`, `sqlite:/var/lib/app/work.db?synchronous=normal`, `sqlite:///var/lib/app/work.db`. */
export async function openSqliteUrl(url: string, wake?: Wake): Promise<Engine> {
  return await sqliteEngine({ ...parseSqliteUrl(url), wake });
}
