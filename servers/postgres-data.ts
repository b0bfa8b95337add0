/** The folder of a database server that has nothing in it yet: made once for the clone, and copied for every server. */
import { execFile } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { fetchOnce } from "./fetch-once.ts";
import type { Owner } from "./postgres-programs.ts";

const run = promisify(execFile);

export const USER = "baton";

/** A folder of its owner's, which holds nothing. */
export function newFolder(owner: Owner | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), "baton-postgres-"));
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
  chmodSync(folder, 0o700);
  return folder;
}

export async function copyEmptyData(programs: string, owner: Owner | undefined, into: string): Promise<void> {
  const version = basename(dirname(programs));
  const empty = await fetchOnce(
    `postgres-${version}-empty-${owner?.uid ?? "own"}`,
    (folder) => (existsSync(join(folder, "PG_VERSION")) ? folder : undefined),
    (folder) => makeEmptyData(programs, owner, folder),
  );
  await run("cp", ["-a", empty, into]);
}

/** In a folder that its owner may enter, and that is its working folder: ours may be closed to it. */
async function makeEmptyData(programs: string, owner: Owner | undefined, into: string): Promise<void> {
  const folder = newFolder(owner);
  const data = join(folder, "data");
  try {
    // Without syncing, because nobody misses an empty database.
    const args = ["-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    await run(join(programs, "initdb"), args, { cwd: folder, ...owner });
    await run("cp", ["-a", `${data}/.`, into]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
