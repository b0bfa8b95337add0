import { spawn } from "node:child_process";

/** The end of its input is the end of the process that holds the other side, kill -9 included. A line is the release. */
const SCRIPT = `
  read -r _ && exit
  kill -9 "$1"
  [ -z "$2" ] || rm -rf "$2" || { sleep 1; rm -rf "$2"; }
`;

/**
 * Kills a server, and removes its folder if one is given, when this process ends in whatever way before the release.
 * In a session of its own, for Ctrl-C must not end the guard before it has done its work.
 */
export function guard(pid: number, folder: string | undefined): () => void {
  const args = ["-c", SCRIPT, "guard", String(pid), folder ?? ""];
  const watcher = spawn("sh", args, { cwd: "/", detached: true, stdio: ["pipe", "ignore", "ignore"] });
  watcher.unref();
  watcher.stdin.on("error", () => undefined);
  return () => watcher.stdin.end("\n");
}
