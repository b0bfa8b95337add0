/** The worker of the black-box run. One that begins while the servers are away tries again until they are back. */
import { setTimeout as wait } from "node:timers/promises";
import { BatonError } from "../../../src/index.ts";

const AGAIN_MS = 100;

for (let tries = 1; ; tries += 1) {
  try {
    // Under a name of its own each time: a module that failed once stays failed.
    await import(`../../sqlite/black-box/worker.ts?try=${tries}`);
    break;
  } catch (error) {
    if (!(error instanceof BatonError && error.code === "STORE_UNAVAILABLE")) throw error;
    await wait(AGAIN_MS);
  }
}
