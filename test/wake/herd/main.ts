/** `npm run herd`: how often a store is asked for work by many idle workers, with hints and without. */
import { startNatsServer } from "../../../servers/nats-server.ts";
import { startPostgres } from "../../../servers/postgres.ts";
import { driveHerd } from "./shepherd.ts";

await using nats = await startNatsServer();
await using postgres = await startPostgres();
const rows = [];
for (const store of [undefined, postgres.url]) {
  for (const submits of ["together", "one by one"] as const) {
    for (const wake of ["own", "nats, no hints", "nats, hints"]) {
      const { looks, done, runs, ms } = await driveHerd({
        processes: 4,
        workers: 50,
        items: 10,
        hints: wake === "nats, hints",
        submits,
        ...(store === undefined ? {} : { store }),
        ...(wake === "own" ? {} : { carrier: nats.url }),
      });
      const name = store === undefined ? "sqlite" : "postgres";
      rows.push({ store: name, submits, wake, "claims at the store": looks, done, runs, ms: Math.round(ms) });
    }
  }
}
console.log("200 idle workers in 4 processes, 10 items");
console.table(rows);
