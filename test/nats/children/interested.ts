/** A process that shows interest in a queue in one of several ways, says so, and stays connected. */
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "../../../src/index.ts";

const [url = "", how = "", waitMs = "0"] = process.argv.slice(2);
/** Until the pulls of a claim stand at the server. */
const IDLE_MS = 200;

const baton = await connect(url);
const cars = baton.queue("cars");
if (how === "stopped") {
  const worker = cars.work(() => undefined);
  await wait(IDLE_MS);
  await worker.stop();
} else if (how === "gave up") {
  await cars.take({ wait: `${Number(waitMs)}ms` });
} else {
  void cars.take({ wait: `${Number(waitMs)}ms` });
  await wait(IDLE_MS);
}
process.send?.(how);
// The parent holds on to it.
process.on("message", () => undefined);
