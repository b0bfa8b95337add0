/**
 * What a lock cannot promise: a holder that stands still for longer than its lease wakes up while another has the lock,
 * and goes on before it notices. The balance is kept in a file, which takes whatever is written to it last: money is
 * lost. The same with a resource that checks the fence, and no money lost: lock-fenced.ts.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "batonq";

const [role, folder = ""] = process.argv.slice(2);
if (role === "holder") await holdAndStandStill();
else await main();

async function holdAndStandStill(): Promise<void> {
  await using baton = await connect(`sqlite:${join(folder, "locks.db")}`, { onEvent: () => undefined });
  const lock = await baton.lock("ada", { lease: "500ms" });
  const balance = read();
  process.send?.("has read");
  // Nothing else happens in this process meanwhile, so the lock is not kept.
  standStillUntil(join(folder, "somebody else was here"));
  // lock.check() would throw here. This holder does not ask, and a stall may come after the question just as well.
  write(balance + 1, `fence ${lock.fence}, after its stall`);
}

async function main(): Promise<void> {
  const shared = mkdtempSync(join(tmpdir(), "baton-example-"));
  try {
    writeFileSync(join(shared, "balance"), "0");
    const holder = fork(import.meta.filename, ["holder", shared]);
    const ended = once(holder, "exit");
    await once(holder, "message");
    await using baton = await connect(`sqlite:${join(shared, "locks.db")}`);
    // Waits until the other's lease has run out: as far as anybody can tell, it has vanished.
    await baton.withLock("ada", (lock) => write(read(shared) + 100, `fence ${lock.fence}`, shared));
    writeFileSync(join(shared, "somebody else was here"), "");
    await ended;
    console.log(`the balance is ${read(shared)}: 100 are lost`);
  } finally {
    rmSync(shared, { recursive: true, force: true });
  }
}

/** As a long collection of garbage would, or a machine that sleeps: not even a timer fires. */
function standStillUntil(file: string): void {
  while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
}

function read(from = folder): number {
  return Number(readFileSync(join(from, "balance"), "utf8"));
}

function write(balance: number, who: string, to = folder): void {
  writeFileSync(join(to, "balance"), String(balance));
  console.log(`${who}: writes ${balance}`);
}
