/** Waits to hold a key of a store, for ever. Says when the call has reached the store. */
import { sqliteEngine } from "../../../src/engines/sqlite/index.ts";

const [file = "", queue = "", key = "", leaseMs = ""] = process.argv.slice(2);
const engine = await sqliteEngine({ file, synchronous: "normal" });
await engine.declare({ queue });
const { signal } = new AbortController();
const waiting = engine.hold({ queue, key, worker: "child", leaseMs: Number(leaseMs), signal });
// Calls through one handle are answered in the order in which they were made, and the hold has to wait.
await engine.queues({ queue });
process.send?.("waits");
await waiting;
process.send?.("holds");
