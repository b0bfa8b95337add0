/** `npm run herd`: how often a store is asked for work by many idle workers, with hints and without. */
import { startNatsServer } from "../../../servers/nats-server.ts";
import { driveHerd } from "./shepherd.ts";

await using server = await startNatsServer();
const rows = [];
for (const submits of ["together", "one by one"] as const) {
  for (const hints of [true, false]) {
    const plan = { carrier: server.url, processes: 4, workers: 50, items: 10, hints, submits };
    const { looks, done, runs, ms } = await driveHerd(plan);
    rows.push({ submits, hints, "claims at the store": looks, done, runs, ms: Math.round(ms) });
  }
}
console.log("200 idle workers in 4 processes, 10 items; SQLite, wakes over NATS");
console.table(rows);
