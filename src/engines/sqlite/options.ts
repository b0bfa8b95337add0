/** What can be chosen, in code or in a URL. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidInput } from "../../domain/errors.ts";
import { checkOptions, checkParameters, type OptionNames } from "../../domain/options.ts";
import type { Wake } from "../../wake/wake.ts";
import type { Synchronous } from "./database.ts";

export interface SqliteOptions {
  /** The store; beside it stand files of the same name with `-wal`, `-shm`, `-wake` and `-wake-…`. */
  readonly file: string;
  /** Default `full`: what was accepted survives power loss. `normal` survives the crash of processes only. */
  readonly synchronous?: Synchronous | undefined;
  /** Wakes other processes in place of the files beside the store. Closed with the engine. */
  readonly wake?: Wake | undefined;
}

export interface SqliteSettings {
  /** In full. */
  readonly file: string;
  readonly synchronous: Synchronous;
  readonly wake: Wake | undefined;
}

const SQLITE_OPTIONS: OptionNames<SqliteOptions> = { file: true, synchronous: true, wake: true };
const LEVELS_OF_SYNC: readonly Synchronous[] = ["full", "normal", "off"];
const PARAMETERS = ["synchronous"];
const A_FILE = "sqlite: followed by the name of a file, as in sqlite:work.db or sqlite:///var/lib/app/work.db";

export function checkSqliteOptions(options: SqliteOptions): SqliteSettings {
  const { file, synchronous = "full", wake } = checkOptions(options, SQLITE_OPTIONS);
  return { file: resolve(checkFile(file, "file")), synchronous: checkSynchronous(synchronous), wake };
}

export function parseSqliteUrl(url: string): { readonly file: string; readonly synchronous?: Synchronous } {
  const [, location = "", query = ""] = /^sqlite:([^?]*)(?:\?(.*))?$/is.exec(url) ?? [];
  const file = checkFile(fileOf(location, url), "store");
  const parameters = new URLSearchParams(query);
  checkParameters(parameters.keys(), PARAMETERS);
  const synchronous = parameters.get("synchronous");
  return synchronous === null ? { file } : { file, synchronous: checkSynchronous(synchronous) };
}

function fileOf(location: string, url: string): string {
  if (/^\/*$/.test(location)) throw new InvalidInput("store", url, A_FILE);
  try {
    return location.startsWith("//") ? fileURLToPath(`file:${location}`) : decodeURIComponent(location);
  } catch {
    // A host, as in sqlite://work.db, or a % that begins nothing.
    throw new InvalidInput("store", url, `${A_FILE}, with % written as %25`);
  }
}

/** SQLite has names that are no files. Taken for one, each would become a file of that name, and nobody would notice. */
function checkFile(file: string, field: string): string {
  if (typeof file !== "string" || file.trim() === "" || file.includes("\0"))
    throw new InvalidInput(field, file, "the name of a file");
  // In any case: SQLite knows the small letters alone, and whoever writes it otherwise does not want a file of that name.
  if (/^:memory:$/i.test(file))
    throw new InvalidInput(
      field,
      file,
      "the name of a file; for a store in memory, connect to memory: (without sqlite:)",
    );
  if (/^file:/i.test(file))
    throw new InvalidInput(field, file, `the name of a file, not a file: URL; as a store, ${A_FILE}`);
  return file;
}

function checkSynchronous(value: string): Synchronous {
  const found = LEVELS_OF_SYNC.find((level) => level === value);
  if (found === undefined) throw new InvalidInput("synchronous", value, LEVELS_OF_SYNC.join(", "));
  return found;
}
