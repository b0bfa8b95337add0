import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./tool.ts";

/**
 * npm links the commands of dependencies, not the one of the package itself. This makes `npx baton` work in a clone,
 * and always with the Node of the clone: the system's may be too old. `exec`, because signals and the process id
 * must be those of the command.
 *
 * Two folders up is worked out by `cd`, which goes by the path as it is written: so it still finds the clone when
 * node_modules is itself a link to somewhere else.
 */
const WRAPPER = `#!/bin/sh
# Written by scripts/link-baton.ts.
self=$0
while [ -h "$self" ]; do
  target=$(readlink "$self")
  case $target in
    /*) self=$target ;;
    *) self=$(dirname "$self")/$target ;;
  esac
done
root=$(unset CDPATH; cd "$(dirname "$self")/../.." && pwd) || exit 1
exec "$root/node_modules/.bin/node" "$root/dist/cli/main.js" "$@"
`;

export function linkBaton(): void {
  // Only a clone has the development dependencies.
  if (!existsSync(join(root, "node_modules/node"))) return;
  const file = join(root, "node_modules/.bin/baton");
  rmSync(file, { force: true });
  writeFileSync(file, WRAPPER, { mode: 0o755 });
}

if (import.meta.main) linkBaton();
