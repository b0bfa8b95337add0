/** A process that uses a store whose carrier is away, or goes away, and says how long it took to close it. */
import { once } from "node:events";
import { connect } from "../../../src/index.ts";

const [url = "", what = "submit"] = process.argv.slice(2);
const baton = await connect(url);
const cars = baton.queue("cars", { history: "1h" });
await cars.submit("car1", null);
if (what === "work") {
  const worker = cars.work(({ key }) => key);
  await (await cars.submit("car2", null)).outcome({ timeout: "30s" });
  await worker.stop();
}
if (what === "stand") {
  cars.work(({ key }) => key);
  await (await cars.submit("car2", null)).outcome({ timeout: "30s" });
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
  process.stdin.destroy();
  await cars.submit("car3", null);
}
const began = performance.now();
await baton.close();
process.stdout.write(`${JSON.stringify({ closedInMs: Math.round(performance.now() - began), at: Date.now() })}\n`);
