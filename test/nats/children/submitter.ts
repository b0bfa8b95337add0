/**
 * A process that submits items of uneven keys and three levels until it is told to stop. When the store is away it says
 * the same again, under the same id, until it is told that the item was accepted.
 */
import { setTimeout as wait } from "node:timers/promises";
import { BatonError, connect } from "../../../src/index.ts";
import { Random } from "../../kit/random.ts";
import { now, recorder } from "../../sqlite/black-box/history.ts";
import { LEVELS, QUEUE } from "../../sqlite/black-box/settings.ts";

const [url = "", folder = "", name = "", seed = "", pause = "25"] = process.argv.slice(2);
const record = recorder(folder, name);
const random = new Random(Number(seed));
const KEYS = 24;
const PAUSE_MS = Number(pause);
const AGAIN_MS = 50;

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
  const payload = { workMs: random.between(2, 60) };
  const from = now();
  while (!(await accepted(key, payload, item, level))) await wait(AGAIN_MS);
  record({ type: "submitted", from, at: now(), item, key, level });
  await wait(random.between(0, 2 * PAUSE_MS));
}

async function accepted(key: string, payload: object, id: string, level: string): Promise<boolean> {
  try {
    await cars.submit(key, payload, { id, level });
    return true;
  } catch (error) {
    if (error instanceof BatonError && ["OUTCOME_UNKNOWN", "STORE_UNAVAILABLE"].includes(error.code)) return false;
    throw error;
  }
}
