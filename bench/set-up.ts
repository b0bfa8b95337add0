/** The peers, installed into this folder alone. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;
const installed = join(folder, "node_modules");
/** What Baton itself is developed with. */
const shared = join(folder, "../node_modules");
const lock = join(folder, "package-lock.json");
/** The lock that was installed, to see whether it has changed since. */
const stamp = join(installed, ".installed-lock.json");

/** Returns why they could not be installed, if they could not. */
export function installPeers(say: (line: string) => void): string | undefined {
  const wanted = readFileSync(lock, "utf8");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return undefined;
  say("installing the peers…");
  const result = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], { cwd: folder, encoding: "utf8" });
  if (result.status !== 0) {
    const reason = result.error?.message ?? result.stderr.split("\n").find((line) => line.startsWith("npm error"));
    return `npm ci in bench/ failed: ${reason ?? "no reason given"}`;
  }
  writeFileSync(stamp, wanted);
  return undefined;
}

export function versionOf(name: string): string | undefined {
  const file = [installed, shared].map((where) => join(where, name, "package.json")).find((one) => existsSync(one));
  if (file === undefined) return undefined;
  const { version } = JSON.parse(readFileSync(file, "utf8")) as { readonly version: string };
  return version;
}
