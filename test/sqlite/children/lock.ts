/** Holds the write lock of the file for as long as it is told to. */
import { DatabaseSync } from "node:sqlite";
import { setTimeout as wait } from "node:timers/promises";

const [file = "", holdMs = ""] = process.argv.slice(2);
const db = new DatabaseSync(file, { timeout: 5_000 });
db.exec("BEGIN IMMEDIATE");
process.send?.("locked");
await wait(Number(holdMs));
db.exec("COMMIT");
db.close();
process.send?.("unlocked");
process.disconnect();
