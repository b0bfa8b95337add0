/**
 * A lock and a resource that checks the fence. A holder stands still for longer than its lease, wakes up while another has
 * the lock, and goes on before it notices, as in lock-unfenced.ts. Here the balance is kept with the highest fence that was
 * shown to it, and a write under a lower one is refused: nothing is lost.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { connect } from "batonq";

const [role, folder = ""] = process.argv.slice(2);
if (role === "holder") await holdAndStandStill();
else await main();

async function holdAndStandStill(): Promise<void> {
  await using baton = await connect(`sqlite:${join(folder, "locks.db")}`, { onEvent: () => undefined });
  const account = openAccount(folder);
  const lock = await baton.lock("ada", { lease: "500ms" });
  const balance = read(account, lock.fence);
  process.send?.("has read");
  // Nothing else happens in this process meanwhile, so the lock is not kept.
  standStillUntil(join(folder, "somebody else was here"));
  // A careful holder would call lock.check() before. It helps, and is not enough: a stall may come right after it.
  write(account, balance + 1, lock.fence);
}

async function main(): Promise<void> {
  const shared = mkdtempSync(join(tmpdir(), "baton-example-"));
  try {
    const account = openAccount(shared);
    const holder = fork(import.meta.filename, ["holder", shared]);
    const ended = once(holder, "exit");
    await once(holder, "message");
    await using baton = await connect(`sqlite:${join(shared, "locks.db")}`);
    // Waits until the other's lease has run out: as far as anybody can tell, it has vanished.
    await baton.withLock("ada", (lock) => write(account, read(account, lock.fence) + 100, lock.fence));
    writeFileSync(join(shared, "somebody else was here"), "");
    await ended;
    console.log(`the balance is ${read(account, 0)}`);
    account.close();
  } finally {
    rmSync(shared, { recursive: true, force: true });
  }
}

/** As a long collection of garbage would, or a machine that sleeps: not even a timer fires. */
function standStillUntil(file: string): void {
  while (!existsSync(file)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
}

function openAccount(inFolder: string): DatabaseSync {
  const account = new DatabaseSync(join(inFolder, "account.db"));
  account.exec("CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, balance INTEGER, fence INTEGER)");
  account.exec("INSERT OR IGNORE INTO account VALUES ('ada', 0, 0)");
  return account;
}

/** Shows the fence before it reads: from here on nobody older can write, not even in between. */
function read(account: DatabaseSync, fence: number): number {
  account.prepare("UPDATE account SET fence = ? WHERE name = 'ada' AND fence < ?").run(fence, fence);
  return Number(account.prepare("SELECT balance FROM account WHERE name = 'ada'").get()?.["balance"]);
}

/** The resource decides, in the same step as the write. */
function write(account: DatabaseSync, balance: number, fence: number): void {
  const update = account.prepare("UPDATE account SET balance = ? WHERE name = 'ada' AND fence = ?");
  const { changes } = update.run(balance, fence);
  console.log(`fence ${fence} writes ${balance}: ${changes === 1 ? "accepted" : "refused, somebody else is further"}`);
}
