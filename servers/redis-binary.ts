/** The programs redis-server and valkey-server: on PATH, cached, or out of Debian's packages. Nothing is installed. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { downloadPackages, missingLibraries } from "./debian-packages.ts";
import { fetchOnce } from "./fetch-once.ts";

export interface RedisBinary {
  readonly program: string;
  readonly version: string;
  /** Where the libraries are that came with it; none: where the system has them. */
  readonly libraries: string | undefined;
}

/** A program of your own, Valkey's too. */
const VARIABLE = "BATON_TEST_REDIS_SERVER";
const OLDEST_MAJOR = 7;
const CACHE_NAME = "redis-server";
/** The first holds links to the programs, the second the programs. */
const PACKAGES = ["redis-server", "redis-tools"];

const VALKEY_PACKAGES = ["valkey-server", "valkey-tools"];
/** What it needs, in the release of the machine as in the newer one. */
const VALKEY_LIBRARIES = ["liblzf1", "libjemalloc2"];

let found: Promise<RedisBinary> | undefined;
let foundValkey: Promise<RedisBinary> | undefined;

/** One that Baton works with. */
export function findRedisServer(): Promise<RedisBinary> {
  found ??= find();
  return found;
}

/** Debian has it since its release 13, and for the one before among the backports. */
export function findValkeyServer(): Promise<RedisBinary> {
  foundValkey ??= findValkey();
  return foundValkey;
}

async function findValkey(): Promise<RedisBinary> {
  const onPath = describe("valkey-server", undefined);
  if (onPath !== undefined) return onPath;
  return await fetchOnce(
    "valkey-server",
    (folder) => describeCached(folder, "valkey-server"),
    async (into) => {
      await downloadPackages(VALKEY_PACKAGES, into).catch(() =>
        downloadPackages(VALKEY_PACKAGES, into, `${releaseName()}-backports`),
      );
      const libraries = execFileSync("ldd", [join(into, "usr/bin/valkey-server")], { encoding: "utf8" });
      if (libraries.includes("not found")) await downloadPackages(VALKEY_LIBRARIES, into);
    },
  );
}

function releaseName(): string {
  return /^VERSION_CODENAME=(\S+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "stable";
}

async function find(): Promise<RedisBinary> {
  const named = process.env[VARIABLE];
  if (named !== undefined && named !== "") {
    const binary = describe(named, undefined);
    // What somebody asked for by name is not replaced by something else.
    if (binary === undefined) throw new Error(`${VARIABLE} is ${named}, which does not run.`);
    return binary;
  }
  const onPath = describe("redis-server", undefined);
  if (onPath !== undefined && Number.parseInt(onPath.version, 10) >= OLDEST_MAJOR) return onPath;
  return await fetchOnce(
    CACHE_NAME,
    (folder) => describeCached(folder, "redis-server"),
    async (into) => {
      await downloadPackages(PACKAGES, into);
      await downloadPackages(missingLibraries(join(into, "usr/bin/redis-server"), PACKAGES), into);
    },
  );
}

function describeCached(folder: string, name: string): RedisBinary | undefined {
  const program = join(folder, "usr/bin", name);
  if (!existsSync(program)) return undefined;
  const libraries = existsSync(join(folder, "usr/lib"))
    ? readdirSync(join(folder, "usr/lib"), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map((entry) => join(folder, "usr/lib", entry.name))
    : [];
  return describe(program, libraries.length === 0 ? undefined : libraries.join(":"));
}

function describe(program: string, libraries: string | undefined): RedisBinary | undefined {
  try {
    const env = libraries === undefined ? process.env : { ...process.env, LD_LIBRARY_PATH: libraries };
    const output = execFileSync(program, ["--version"], { env, encoding: "utf8", stdio: "pipe" });
    const version = /v=(\S+)/.exec(output)?.[1];
    return version === undefined ? undefined : { program, version, libraries };
  } catch {
    return undefined;
  }
}
