/** A worker process: for each item it changes the register of the item's key, step by step, and shows its fence. */
import { setTimeout as wait } from "node:timers/promises";
import { connect, Fatal, type HeldLease, RetryLater, type WorkItem } from "../../src/index.ts";
import { flawOf } from "../controls/catalogue.ts";
import type { EffectSent } from "../history/fact.ts";
import { recorder } from "../history/recorder.ts";
import { RegisterClient } from "../register/client.ts";
import { ATTEMPTS, type Job, LEVELS, QUEUE } from "../scene.ts";
import { openEngine } from "./open-engine.ts";
import { readPart } from "./part.ts";
import { block, watchStalls } from "./stall-watch.ts";

/** Keys that one process works on at a time. */
const CONCURRENCY = 8;
/** Long work shows its fence so often. */
const STEP_MS = 400;
const AGAIN_AFTER = "200ms";

const part = readPart();
const record = recorder(part.folder, part.name);
const stopWatching = watchStalls(record);
const registers = new RegisterClient(part.registers, part.name, record);
const clock = flawOf(part.control).clock?.();
const baton = await connect(await openEngine(part, record), {
  // What it has to tell is in the history; a person does not read along.
  onEvent: () => undefined,
  ...(clock === undefined ? {} : { clock }),
});
const queue = baton.queue<Job>(QUEUE, {
  levels: LEVELS,
  lease: part.leaseMs,
  retry: { attempts: ATTEMPTS, backoff: "100ms", maxBackoff: "1s" },
});

async function handle({ payload, attempt }: WorkItem<Job>, lease: HeldLease): Promise<void> {
  const { item, careless, fails } = payload;
  const affect = async (step: EffectSent["step"]): Promise<void> => {
    if (careless !== true) lease.check();
    if (!(await registers.apply({ item, key: lease.key, fence: lease.fence, step }))) {
      throw new Error(`The register of ${lease.key} has seen a higher fence than ${lease.fence}.`);
    }
  };
  await affect("began");
  for (let leftMs = payload.workMs; leftMs > 0; leftMs -= STEP_MS) {
    await wait(Math.min(leftMs, STEP_MS), undefined, { signal: lease.signal });
    if (leftMs > STEP_MS) await affect("went on");
  }
  if (fails === "once" && attempt === 1) throw new RetryLater(AGAIN_AFTER);
  if (fails === "fatal") throw new Fatal("This item is made to fail.");
  await affect("finished");
}

const worker = queue.work(handle, { name: part.name, concurrency: CONCURRENCY });

process.on("message", (forMs) => {
  if (typeof forMs === "number") block(forMs, record);
});
process.on("SIGINT", () => undefined);
process.once("disconnect", () => {
  void worker
    .stop({ grace: "2s" })
    .then(() => baton.close({ grace: 0 }))
    .finally(() => {
      stopWatching();
      registers.close();
      process.exit();
    });
});
process.send?.("ready");
