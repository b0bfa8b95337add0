/** A Redis server: from PATH, else the cached one, else from Debian's packages, unpacked into the cache. Nothing is installed. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { downloadPackages, missingLibraries } from "../../servers/debian-packages.ts";
import { cacheFolder } from "./place.ts";

export interface Redis {
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly version: string;
}

const CACHED = join(cacheFolder, "redis");
/** The first holds links to the programs, the second the programs. */
const PACKAGES = ["redis-server", "redis-tools"];

let found: Promise<Redis> | undefined;

export function findRedis(): Promise<Redis> {
  found ??= find();
  return found;
}

async function find(): Promise<Redis> {
  const onPath = describe("redis-server", process.env);
  if (onPath !== undefined) return onPath;
  const cached = describeCached();
  if (cached !== undefined) return cached;
  await fetchRedis();
  const fetched = describeCached();
  if (fetched === undefined) throw new Error("The Redis of Debian's packages does not run here.");
  return fetched;
}

function describeCached(): Redis | undefined {
  const program = join(CACHED, "usr/bin/redis-server");
  if (!existsSync(program)) return undefined;
  const libraries = readdirSync(join(CACHED, "usr/lib"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(CACHED, "usr/lib", entry.name));
  return describe(program, { ...process.env, LD_LIBRARY_PATH: libraries.join(":") });
}

function describe(program: string, environment: NodeJS.ProcessEnv): Redis | undefined {
  try {
    const output = execFileSync(program, ["--version"], { env: environment, encoding: "utf8", stdio: "pipe" });
    const version = /v=(\S+)/.exec(output)?.[1];
    return version === undefined ? undefined : { program, environment, version };
  } catch {
    return undefined;
  }
}

async function fetchRedis(): Promise<void> {
  // Complete or not there: a run that is interrupted leaves nothing that looks usable.
  const unfinished = `${CACHED}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    await downloadPackages(PACKAGES, unfinished);
    await downloadPackages(missingLibraries(join(unfinished, "usr/bin/redis-server"), PACKAGES), unfinished);
    rmSync(CACHED, { recursive: true, force: true });
    renameSync(unfinished, CACHED);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    throw new Error("There is no redis-server on PATH, and none could be had from Debian's packages.", {
      cause: error,
    });
  }
}
