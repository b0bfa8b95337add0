/**
 * Counts under a lock, for ever: reads, then writes one more, in a store that checks the fence of both: a read shows its fence, so that
 * whoever read before cannot write after. Its own deadline it does not look at.
 */
import { DatabaseSync } from "node:sqlite";
import { renewAfterMs } from "../../../src/domain/lease.ts";
import { consulLocks } from "../../../src/consul/index.ts";
import type { Locks, Session } from "../../../src/locks/port.ts";

const [address = "", file = "", lease = ""] = process.argv.slice(2);
const leaseMs = Number(lease);
const locks = await consulLocks({ address, shortestLeaseMs: leaseMs });
const database = new DatabaseSync(file, { timeout: 10_000 });
const read = database.prepare("UPDATE counter SET fence = ? WHERE fence < ? RETURNING n");
const write = database.prepare("UPDATE counter SET n = ? WHERE fence = ?");
const note = database.prepare("INSERT INTO log (n, fence, pid) VALUES (?, ?, ?)");
const refuse = database.prepare("INSERT INTO refused (fence, pid) VALUES (?, ?)");

for (;;) {
  const session = await locks.openSession({ owner: `pid ${process.pid}`, leaseMs, expiry: "release" });
  const signs = setInterval(() => void locks.renewSession(session).catch(() => undefined), renewAfterMs(leaseMs));
  try {
    for (;;) await countOnce(locks, session);
  } catch {
    // The session was lost, as it must be after a stop.
  } finally {
    clearInterval(signs);
    await locks.closeSession(session).catch(() => undefined);
  }
}

async function countOnce(store: Locks, session: Session): Promise<void> {
  const signal = new AbortController().signal;
  const result = await store.acquire({ session, name: "counter", slots: 1, delayAfterLossMs: 0, signal });
  if (!result.ok) return;
  const { fence } = result.hold;
  const n = Number(read.get(fence, fence)?.["n"]) + 1;
  // Time for others to come in between, if they could.
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  database.exec("BEGIN IMMEDIATE");
  const { changes } = write.run(n, fence);
  if (changes === 1) note.run(n, fence, process.pid);
  else refuse.run(fence, process.pid);
  database.exec("COMMIT");
  await store.release({ hold: result.hold });
}
