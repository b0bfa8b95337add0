/** Where PostgreSQL's programs are, and as whom they run: named, on the machine, or out of Debian's packages. Nothing is installed. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { downloadPackages } from "./debian-packages.ts";
import { fetchOnce } from "./fetch-once.ts";

/** Where Debian and its children keep the programs of each version. */
const DEBIAN_VERSIONS = "usr/lib/postgresql";
/** Whom root lends the server to, first that exists: PostgreSQL refuses to be run by root. */
const SERVANTS = ["postgres", "nobody"];
const VARIABLE = "BATON_TEST_POSTGRES";
const NEEDED = ["initdb", "postgres"];

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The folder of the newest version. */
export async function findPostgres(): Promise<string> {
  const named = process.env[VARIABLE];
  if (named !== undefined && named !== "") return named;
  const here = [...versionsIn("/"), ...(process.env["PATH"] ?? "").split(delimiter)].find(isComplete);
  if (here !== undefined) return here;
  try {
    return await fetchOnce(
      "postgresql",
      (folder) => versionsIn(folder).find(isComplete),
      (into) => downloadPackages(latestPackages(), into),
    );
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.trim().replaceAll("\n", " ") : String(cause);
    throw new Error(
      `There is no PostgreSQL: ${VARIABLE} is not set; there is none on this machine; from Debian's packages: ${reason}. ` +
        `Install PostgreSQL, or set ${VARIABLE} to the folder of its programs.`,
      { cause },
    );
  }
}

function versionsIn(root: string): readonly string[] {
  const folder = join(root, DEBIAN_VERSIONS);
  const versions = existsSync(folder) ? readdirSync(folder).toSorted((a, b) => Number(b) - Number(a)) : [];
  return versions.map((version) => join(folder, version, "bin"));
}

function isComplete(folder: string): boolean {
  return NEEDED.every((name) => existsSync(join(folder, name)));
}

/** `postgresql` itself holds nothing but the name of the version that the release has. */
function latestPackages(): readonly string[] {
  const depends = execFileSync("apt-cache", ["depends", "postgresql"], { encoding: "utf8" });
  const server = /Depends: (postgresql-\d+)/.exec(depends)?.[1];
  if (server === undefined) throw new Error("apt does not know postgresql");
  return [server, server.replace("postgresql-", "postgresql-client-"), "libpq5"];
}

/** Undefined: whoever we are will do. */
export function postgresOwner(): Owner | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of SERVANTS) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // No such user here.
    }
  }
  throw new Error(`PostgreSQL cannot be run by root, and there is no user ${SERVANTS.join(" or ")} to run it.`);
}
