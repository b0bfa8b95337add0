import type { Ending, Settlement, SettleResult, Submission, SubmitResult } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Takes the entries of a batch in no particular order: here, from the back. */
class SwapsEntries extends PassThrough {
  override async submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    return (await super.submit(submissions.toReversed())).toReversed();
  }
}

/** Sends an item that failed to the back, whatever the queue says. */
class RetriesLater extends PassThrough {
  override settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return super.settle(settlements.map((one) => Object.assign({}, one, { ending: yielding(one.ending) })));
  }
}

function yielding(ending: Ending): Ending {
  return ending.type === "retry" ? { ...ending, place: "yield", delayMs: Math.max(ending.delayMs, 1) } : ending;
}

export const swapsEntries: BrokenEngine = brokenEngine(
  "G5",
  "takes batches from the back",
  () => (inner) => new SwapsEntries(inner),
);
export const retriesLater: BrokenEngine = brokenEngine(
  "G5",
  "gives away the place of a retry",
  () => (inner) => new RetriesLater(inner),
);
