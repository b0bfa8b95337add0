/** What takes a download is fetched once for the clone, however many processes ask for it at the same time. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";

const CACHE = join(import.meta.dirname, "../.cache/servers");
const LOOK_EVERY_MS = 100;
/** Of SQLite. */
const BUSY = 5;

export function cached(name: string): string {
  return join(CACHE, name);
}

/** `look` says what the folder holds, if it is of use. Others that ask meanwhile wait, and share the failure as well. */
export async function fetchOnce<Found>(
  name: string,
  look: (folder: string) => Found | undefined,
  fetch: (into: string) => Promise<void>,
): Promise<Found> {
  const folder = cached(name);
  const asked = Date.now();
  const before = look(folder);
  if (before !== undefined) return before;
  mkdirSync(CACHE, { recursive: true });
  using _lock = await lock(`${folder}.lock`);
  const meanwhile = look(folder);
  if (meanwhile !== undefined) return meanwhile;
  const failure = `${folder}.failure`;
  const told = failureSince(failure, asked);
  if (told !== undefined) throw new Error(told);
  try {
    removeUnfinished(name);
    // Complete or not there: a process that is killed leaves nothing that looks usable.
    const unfinished = mkdtempSync(`${folder}.unfinished-`);
    await fetch(unfinished);
    rmSync(folder, { recursive: true, force: true });
    renameSync(unfinished, folder);
    const found = look(folder);
    if (found === undefined) throw new Error("What was fetched is of no use.");
    return found;
  } catch (error) {
    writeFileSync(failure, error instanceof Error ? error.message : String(error));
    removeUnfinished(name);
    throw error;
  }
}

/** A lock of the operating system, by way of SQLite: it ends with the process that holds it, however that ends. */
async function lock(file: string): Promise<Disposable> {
  for (;;) {
    const database = new DatabaseSync(file, { timeout: 0 });
    try {
      database.exec("BEGIN EXCLUSIVE");
      return { [Symbol.dispose]: () => database.close() };
    } catch (error) {
      database.close();
      if (!(error instanceof Error && "errcode" in error && error.errcode === BUSY)) throw error;
    }
    await sleep(LOOK_EVERY_MS);
  }
}

/** Whoever waited for an attempt that failed has no better luck with another one right after it. */
function failureSince(file: string, asked: number): string | undefined {
  const written = statSync(file, { throwIfNoEntry: false });
  return written !== undefined && written.mtimeMs >= asked ? readFileSync(file, "utf8") : undefined;
}

/** Of processes that were killed: who holds the lock is the only one at it. */
function removeUnfinished(name: string): void {
  for (const entry of readdirSync(CACHE)) {
    if (entry.startsWith(`${name}.unfinished-`)) rmSync(join(CACHE, entry), { recursive: true, force: true });
  }
}
