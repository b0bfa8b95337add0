/** The program nats-server: named, on PATH, cached, or out of Debian's packages. Nothing is installed. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { downloadPackages } from "./debian-packages.ts";
import { cached, fetchOnce } from "./fetch-once.ts";

export interface NatsBinary {
  readonly program: string;
  readonly version: string;
}

const VARIABLE = "BATON_TEST_NATS_SERVER";
const WANTED = "2.12.8 or a later 2.12, or 2.14.0 or later";
/** Of Debian, the likeliest first. */
const NEW_SUITES = ["sid", "forky"];
/** Holds 2.9. */
const OLD_SUITE = "bookworm";

let found: Promise<NatsBinary> | undefined;
let foundOld: Promise<NatsBinary> | undefined;

/** One that Baton works with. */
export function findNatsServer(): Promise<NatsBinary> {
  found ??= find();
  return found;
}

/** One that Baton refuses. */
export function findOldNatsServer(): Promise<NatsBinary> {
  foundOld ??= fetchFrom(OLD_SUITE, (version) => !isNewEnough(version));
  return foundOld;
}

/** Nothing between the lines 2.12 and 2.14, and no previews. */
export function isNewEnough(version: string): boolean {
  const [, major, minor, patch] = (/^(\d+)\.(\d+)\.(\d+)$/.exec(version) ?? []).map(Number);
  if (major === undefined || minor === undefined || patch === undefined) return false;
  if (major !== 2) return major > 2;
  return minor === 12 ? patch >= 8 : minor >= 14;
}

async function find(): Promise<NatsBinary> {
  const named = process.env[VARIABLE];
  if (named !== undefined && named !== "") return theNamed(named);
  const onPath = describe("nats-server");
  if (onPath !== undefined && isNewEnough(onPath.version)) return onPath;
  for (const suite of NEW_SUITES) {
    const binary = describeCached(cached(cacheName(suite)), isNewEnough);
    if (binary !== undefined) return binary;
  }
  const tried = [
    `${VARIABLE} is not set`,
    onPath === undefined ? "there is no nats-server on PATH" : `the nats-server on PATH is ${onPath.version}`,
  ];
  for (const suite of NEW_SUITES) {
    try {
      return await fetchFrom(suite, isNewEnough);
    } catch (error) {
      const reason = error instanceof Error ? error.message.trim().replaceAll("\n", " ") : String(error);
      tried.push(`from Debian's ${suite}: ${reason}`);
    }
  }
  throw new Error(
    `There is no usable nats-server: ${tried.join("; ")}. Install nats-server ${WANTED}, ` +
      `or set ${VARIABLE} to such a program (that of a container image will do; images are not fetched from here).`,
  );
}

/** What somebody asked for by name is not replaced by something else. */
function theNamed(program: string): NatsBinary {
  const binary = describe(program);
  if (binary === undefined) throw new Error(`${VARIABLE} is ${program}, which does not run.`);
  if (!isNewEnough(binary.version)) {
    throw new Error(`${VARIABLE} is ${program}, which is ${binary.version}. It has to be ${WANTED}.`);
  }
  return binary;
}

function fetchFrom(suite: string, accepts: (version: string) => boolean): Promise<NatsBinary> {
  return fetchOnce(
    cacheName(suite),
    (folder) => describeCached(folder, accepts),
    (into) => downloadPackages(["nats-server"], into, suite),
  );
}

function cacheName(suite: string): string {
  return `nats-server-${suite}`;
}

function describeCached(folder: string, accepts: (version: string) => boolean): NatsBinary | undefined {
  const binary = describe(join(folder, "usr/sbin/nats-server"));
  return binary !== undefined && accepts(binary.version) ? binary : undefined;
}

function describe(program: string): NatsBinary | undefined {
  try {
    const output = execFileSync(program, ["--version"], { encoding: "utf8", stdio: "pipe" });
    const version = /v(\d\S*)/.exec(output)?.[1];
    return version === undefined ? undefined : { program, version };
  } catch {
    return undefined;
  }
}
