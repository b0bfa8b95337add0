/** Programs out of Debian packages, unpacked into a folder of ours, by the machine's own apt sources. Nothing is installed. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { sourcesOf } from "./debian-sources.ts";

const run = promisify(execFile);

/** A download that takes longer than this hangs: whoever waits for it shall hear so. */
const HANGS_MS = 180_000;

/** With a suite, such as "sid": from there, whatever release the machine runs. */
export async function downloadPackages(names: readonly string[], into: string, suite?: string): Promise<void> {
  if (names.length === 0) return;
  const downloads = join(into, "downloads");
  mkdirSync(downloads, { recursive: true });
  const apt = async (...args: readonly string[]): Promise<void> => {
    await run("apt-get", args, { cwd: downloads, timeout: HANGS_MS });
  };
  const withOwnLists = async (): Promise<void> => {
    const configuration = writeConfiguration(downloads, suite);
    await apt("-c", configuration, "update");
    await apt("-c", configuration, "download", ...names);
  };
  // The machine's lists know its own release only, and may be missing or stale.
  await (suite === undefined ? apt("download", ...names).catch(withOwnLists) : withOwnLists());
  for (const file of readdirSync(downloads)) {
    if (file.endsWith(".deb")) await run("dpkg-deb", ["-x", join(downloads, file), into]);
  }
  rmSync(downloads, { recursive: true, force: true });
}

/** The libraries that the packages depend on, if the program does not start for want of them. */
export function missingLibraries(program: string, packages: readonly string[]): readonly string[] {
  const libraries = execFileSync("ldd", [program], { encoding: "utf8" });
  if (!libraries.includes("not found")) return [];
  const depends = execFileSync("apt-cache", ["depends", ...packages], { encoding: "utf8" });
  const named = Array.from(depends.matchAll(/Depends: (lib\S+)/g), ([, name]) => name ?? "");
  return named.filter((name) => !isInstalled(name));
}

function isInstalled(name: string): boolean {
  try {
    return execFileSync("dpkg-query", ["-W", "-f", "${Status}", name], { encoding: "utf8", stdio: "pipe" }).includes(
      "ok installed",
    );
  } catch {
    return false;
  }
}

/** What apt writes goes into a folder of ours, so that nothing of the system changes. */
function writeConfiguration(folder: string, suite: string | undefined): string {
  const lists = join(folder, "lists");
  const cache = join(folder, "cache");
  mkdirSync(join(lists, "partial"), { recursive: true });
  mkdirSync(join(cache, "archives/partial"), { recursive: true });
  const settings: Record<string, string> = {
    "Dir::State::lists": lists,
    "Dir::Cache": cache,
    // The sandbox user of apt cannot write into a folder of ours.
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::Retries": "2",
    // Without it, a source that cannot be reached is a warning, and the download fails for a reason that says less.
    "APT::Update::Error-Mode": "any",
  };
  if (suite !== undefined) {
    const sources = join(folder, "suite.sources");
    writeFileSync(sources, sourcesOf(suite));
    settings["Dir::Etc::sourcelist"] = sources;
    settings["Dir::Etc::sourceparts"] = "/dev/null";
  }
  // The machine's hooks tell the system of new lists; these are none of its business.
  const hooks = ["APT::Update::Pre-Invoke", "APT::Update::Post-Invoke", "APT::Update::Post-Invoke-Success"];
  const configuration = join(folder, "apt.conf");
  writeFileSync(
    configuration,
    [
      ...hooks.map((name) => `#clear ${name};\n`),
      ...Object.entries(settings).map(([name, value]) => `${name} "${value}";\n`),
    ].join(""),
  );
  return configuration;
}
