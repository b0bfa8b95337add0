/**
 * An exclusive task loop: three servers walk the same list of customers, and each customer's report is made by one of them.
 * A server that comes late finds them done. What failed is left for whoever comes next.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "batonq";

const CUSTOMERS = ["ada", "bob", "cy", "dee", "eve", "fay"];

const [role, store = "", server = ""] = process.argv.slice(2);
if (role === "server") await makeReports();
else await main();

async function makeReports(): Promise<void> {
  await using baton = await connect(store);
  const { done, skipped, failed } = await baton.each(
    CUSTOMERS,
    async (customer, lock) => {
      await wait(100, undefined, { signal: lock.signal });
      if (customer === "cy" && server !== "late") throw new Error("no address");
      console.log(`${server}: report for ${customer}`);
    },
    { key: (customer) => `report/${customer}`, remember: "1d" },
  );
  console.log(`${server} has done ${done.length}, skipped ${skipped.length}, failed ${failed.length}`);
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "baton-example-"));
  try {
    const url = `sqlite:${join(folder, "work.db")}`;
    await Promise.all(
      ["one", "two", "three"].map((name) => once(fork(import.meta.filename, ["server", url, name]), "exit")),
    );
    await once(fork(import.meta.filename, ["server", url, "late"]), "exit");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
