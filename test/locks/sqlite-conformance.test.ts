import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { SqliteEngine } from "../../src/engines/sqlite/engine.ts";
import type { Register } from "../../src/locks/register.ts";
import { addLockTests } from "./add-lock-tests.ts";
import { registerTarget } from "./register-target.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-locks-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A handle of its own for each, as every process has one: it ends with its register. */
async function openRegister(): Promise<Register> {
  const engine = await SqliteEngine.open({ file: join(folder, "store.db"), synchronous: "full" });
  const { register } = engine;
  return {
    read: (name) => register.read(name),
    write: (request) => register.write(request),
    watch: (name, changed) => register.watch(name, changed),
    listen: (name, told) => register.listen(name, told),
    list: (prefix) => register.list(prefix),
    close: () => engine.close(),
  };
}

// The file is there before and after: whatever is open lives on.
const restart = async (): Promise<void> => undefined;

// Each handle has a thread, and every change wakes all of them: a few cases at a time, with leases that leave room for it.
addLockTests("locks in SQLite", registerTarget({ name: "sqlite", openRegister, restart, leaseMs: 1_000 }), {
  concurrency: 4,
});
