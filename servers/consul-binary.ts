/** The program consul: named, on PATH, cached, or out of Debian's packages. Nothing is installed. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { downloadPackages } from "./debian-packages.ts";
import { fetchOnce } from "./fetch-once.ts";

export interface ConsulBinary {
  readonly program: string;
  readonly version: string;
}

const VARIABLE = "BATON_TEST_CONSUL";
/** The last release of Debian with a Consul. It holds 1.8.7. */
const SUITE = "bullseye";

let found: Promise<ConsulBinary> | undefined;

export function findConsul(): Promise<ConsulBinary> {
  found ??= find();
  return found;
}

async function find(): Promise<ConsulBinary> {
  const named = process.env[VARIABLE];
  if (named !== undefined && named !== "") return theNamed(named);
  const onPath = describe("consul");
  if (onPath !== undefined) return onPath;
  try {
    return await fetchOnce(
      `consul-${SUITE}`,
      (folder) => describe(join(folder, "usr/bin/consul")),
      (into) => downloadPackages(["consul"], into, SUITE),
    );
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.trim().replaceAll("\n", " ") : String(cause);
    throw new Error(
      `There is no consul: ${VARIABLE} is not set; there is none on PATH; from Debian's ${SUITE}: ${reason}. ` +
        `Install Consul, or set ${VARIABLE} to the program.`,
      { cause },
    );
  }
}

/** What somebody asked for by name is not replaced by something else. */
function theNamed(program: string): ConsulBinary {
  const binary = describe(program);
  if (binary === undefined) throw new Error(`${VARIABLE} is ${program}, which does not run.`);
  return binary;
}

function describe(program: string): ConsulBinary | undefined {
  try {
    const output = execFileSync(program, ["version"], { encoding: "utf8", stdio: "pipe" });
    const version = /^Consul v(\d\S*)/.exec(output)?.[1];
    return version === undefined ? undefined : { program, version };
  } catch {
    return undefined;
  }
}
