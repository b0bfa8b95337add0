/** Begins items of a key before the store knows of it, says so, and stands still until it is killed. */
import { openPostgresUrl } from "../../../src/engines/postgres/index.ts";
import { becomeQuick, items, runAhead } from "../run-ahead.ts";

const [url = "", count = "", total = "", lease = ""] = process.argv.slice(2);
const request = { leaseMs: Number(lease) };
const engine = await openPostgresUrl(url);
await engine.declare({ queue: "cars" });
await becomeQuick(engine, request);
process.send?.("quick");
await new Promise((resolve) => process.once("message", resolve));
const submissions = (key: string) => items(key, Number(total));
const { key, grants } = await runAhead(engine, { count: Number(count), submissions, request });
process.send?.({ key, fences: grants.map(({ lease: { fence } }) => fence) });
setInterval(() => undefined, 1_000);
