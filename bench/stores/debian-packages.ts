/** Programs out of Debian packages, unpacked into a folder of ours, by the machine's own apt sources. */
import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export async function downloadPackages(names: readonly string[], into: string): Promise<void> {
  if (names.length === 0) return;
  const downloads = join(into, "downloads");
  mkdirSync(downloads, { recursive: true });
  try {
    await run("apt-get", ["download", ...names], { cwd: downloads });
  } catch {
    // The machine's lists are missing or stale: private ones, so that nothing of the system changes.
    const own = privateLists(into);
    await run("apt-get", [...own, "update"], { cwd: downloads });
    await run("apt-get", [...own, "download", ...names], { cwd: downloads });
  }
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

function privateLists(into: string): string[] {
  const lists = join(into, "downloads/lists");
  const cache = join(into, "downloads/cache");
  mkdirSync(join(lists, "partial"), { recursive: true });
  mkdirSync(join(cache, "archives/partial"), { recursive: true });
  // The sandbox user of apt cannot write into a folder of ours.
  const options = { "Dir::State::lists": lists, "Dir::Cache": cache, "APT::Sandbox::User": "root" };
  return Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
}
