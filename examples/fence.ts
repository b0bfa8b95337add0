/**
 * The fence: a worker that stands still for longer than its lease may wake up while another has its key, and go on
 * before it notices. No lock can prevent that; your own store can, by refusing writes under a lower fence than it has seen.
 */
import { DatabaseSync } from "node:sqlite";
import { connect } from "batonq";

const accounts = new DatabaseSync(":memory:");
accounts.exec("CREATE TABLE account (name TEXT PRIMARY KEY, balance INTEGER, fence INTEGER)");
accounts.exec("INSERT INTO account VALUES ('ada', 0, 0)");
const update = accounts.prepare("UPDATE account SET balance = ?, fence = ? WHERE name = ? AND fence <= ?");

function save(name: string, balance: number, fence: number): void {
  const { changes } = update.run(balance, fence, name, fence);
  console.log(`fence ${fence} writes ${balance}: ${changes === 1 ? "accepted" : "refused, somebody else is further"}`);
}

/** Nothing else happens in this process meanwhile, so the lease is not renewed. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

// The events say what happened to the lease; without a listener they become warnings.
await using baton = await connect("memory:", {
  onEvent: (event) => {
    if (event.type === "lost") console.log(`the lease with fence ${event.fence} is lost: ${event.why}`);
  },
});
const payments = baton.queue<number>("payments", { lease: "200ms" });
await payments.submit("ada", 100);

const anotherHasPaid = Promise.withResolvers<void>();
const worker = payments.work(
  async (item, lease) => {
    if (item.attempt === 1) {
      standStill(400);
      // A careful handler would call lease.check() here. This one does not, and comes too late.
      await anotherHasPaid.promise;
      save(item.key, item.payload + 1, lease.fence);
    } else {
      save(item.key, item.payload, lease.fence);
      anotherHasPaid.resolve();
    }
  },
  { concurrency: 2, untilEmpty: true },
);
await worker.stopped;
console.log(`the balance is ${String(accounts.prepare("SELECT balance FROM account").get()?.["balance"])}`);
