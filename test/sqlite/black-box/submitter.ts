/** A process that submits items of uneven keys and three levels until it is told to stop. */
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "../../../src/index.ts";
import { Random } from "../../kit/random.ts";
import { now, recorder } from "./history.ts";
import { LEVELS, QUEUE } from "./settings.ts";

const [url = "", folder = "", name = "", seed = ""] = process.argv.slice(2);
const record = recorder(folder, name);
const random = new Random(Number(seed));
const KEYS = 24;
const PAUSE_MS = 25;

await using baton = await connect(url);
const cars = baton.queue(QUEUE);
const stop = new AbortController();
process.once("disconnect", () => stop.abort());
process.send?.("ready");

for (let number = 1; !stop.signal.aborted; number += 1) {
  const item = `${name}-${number}`;
  // The square makes the first keys much more frequent than the last.
  const key = `car${Math.floor(random.next() ** 2 * KEYS)}`;
  const level = random.pick(LEVELS);
  const from = now();
  await cars.submit(key, { workMs: random.between(2, 60) }, { id: item, level });
  record({ type: "submitted", from, at: now(), item, key, level });
  await wait(random.between(0, 2 * PAUSE_MS));
}
