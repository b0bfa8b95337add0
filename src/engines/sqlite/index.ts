import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidInput } from "../../domain/errors.ts";
import type { Engine } from "../../engine/port.ts";
import type { Wake } from "../../wake/wake.ts";
import type { Synchronous } from "./database.ts";
import { SqliteEngine } from "./engine.ts";

export type { Synchronous };

export interface SqliteOptions {
  /** The store; beside it stand files of the same name with `-wal`, `-shm`, `-wake` and `-wake-…`. */
  readonly file: string;
  /** Default `full`: what was accepted survives power loss. `normal` survives the crash of processes only. */
  readonly synchronous?: Synchronous;
  /** Wakes other processes in place of the files beside the store. Closed with the engine. */
  readonly wake?: Wake;
}

const LEVELS_OF_SYNC: readonly string[] = ["full", "normal", "off"] satisfies readonly Synchronous[];

/** One file, any number of processes on one machine. */
export function sqliteEngine(options: SqliteOptions): Promise<Engine> {
  const { file, synchronous = "full", wake } = options;
  return SqliteEngine.open({ file: resolve(file), synchronous }, wake);
}

/** `sqlite:work.db`, `sqlite:/var/lib/app/work.db?synchronous=normal`, `sqlite:///var/lib/app/work.db`. */
export function openSqliteUrl(url: string, wake?: Wake): Promise<Engine> {
  const [location = "", query = ""] = url.slice("sqlite:".length).split("?", 2);
  const file = location.startsWith("//") ? fileURLToPath(`file:${location}`) : decodeURIComponent(location);
  if (file === "") throw new InvalidInput("store", url, "sqlite: followed by the name of a file");
  const parameters = new URLSearchParams(query);
  for (const name of parameters.keys()) {
    if (name !== "synchronous")
      throw new InvalidInput("store", url, "no parameter but synchronous=full, normal or off");
  }
  const synchronous = parameters.get("synchronous") ?? "full";
  if (!isSynchronous(synchronous)) throw new InvalidInput("synchronous", synchronous, LEVELS_OF_SYNC.join(", "));
  return sqliteEngine({ file, synchronous, ...(wake === undefined ? {} : { wake }) });
}

function isSynchronous(value: string): value is Synchronous {
  return LEVELS_OF_SYNC.includes(value);
}
