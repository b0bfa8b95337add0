import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const cacheFolder: string = join(import.meta.dirname, "../../.cache/bench");

/** Of `statfs`, on Linux. */
const TMPFS = 0x01_02_19_94;

/** Servers stop within a second. */
const REMOVE_TRIES = 30;
const REMOVE_EVERY_MS = 100;

let base: string | undefined;

/** A new folder on a real disk, the same disk for every store: memory would make every fsync free. */
export function newFolder(name: string, owner?: { readonly uid: number; readonly gid: number }): string {
  base ??= makeBase();
  const folder = mkdtempSync(join(base, `${name}-`));
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  return folder;
}

/** Synchronous, for it is the last thing that a run does. */
export function removeFolders(): void {
  if (base === undefined) return;
  for (let left = REMOVE_TRIES; left > 0 && existsSync(base); left -= 1) {
    try {
      rmSync(base, { recursive: true, force: true });
    } catch {
      // A server that was only just asked to stop still writes.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVE_EVERY_MS);
    }
  }
  base = undefined;
}

function makeBase(): string {
  mkdirSync(cacheFolder, { recursive: true });
  // The temporary folders come first because every user may pass through them: PostgreSQL refuses to be run by root.
  const parent = [tmpdir(), "/var/tmp", cacheFolder].find((folder) => !isMemory(folder)) ?? cacheFolder;
  const folder = mkdtempSync(join(parent, "baton-bench-"));
  // Made for its owner alone; another user has to pass through it to a folder of their own.
  chmodSync(folder, 0o711);
  return folder;
}

function isMemory(folder: string): boolean {
  try {
    return statfsSync(folder).type === TMPFS;
  } catch {
    return true;
  }
}
