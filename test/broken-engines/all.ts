import type { BrokenEngine } from "./broken-engine.ts";
import { holdsApart, overlooksLeases } from "./g01-exclusive.ts";
import { keepsLossesToItself, settlesByKey } from "./g02-fenced.ts";
import { forgetsAtRestart } from "./g03-durable.ts";
import { deletesWhatIsNotEmpty, forgetsTheCancelled, losesSubmissions } from "./g04-accounted.ts";
import { retriesLater, swapsEntries } from "./g05-ordered.ts";
import { oneAtATime } from "./g06-independent.ts";
import { polls } from "./g07-prompt.ts";
import { ignoresLevels, starves } from "./g08-urgent.ts";
import { forgetsIds } from "./g09-idempotent.ts";
import { foldsKeys, ignoresLimits } from "./g10-bounded.ts";
import { forgetsAtTheEnd, forgetsFailures, hidesAttempts, hidesMissingResults, leaksLeases } from "./g11-honest.ts";
import { brokenRuns } from "./runs.ts";

/** At least one for each guarantee. */
export const brokenEngines: readonly BrokenEngine[] = [
  overlooksLeases,
  holdsApart,
  settlesByKey,
  keepsLossesToItself,
  forgetsAtRestart,
  losesSubmissions,
  forgetsTheCancelled,
  deletesWhatIsNotEmpty,
  swapsEntries,
  retriesLater,
  oneAtATime,
  polls,
  ignoresLevels,
  starves,
  forgetsIds,
  ignoresLimits,
  foldsKeys,
  leaksLeases,
  hidesAttempts,
  forgetsFailures,
  forgetsAtTheEnd,
  hidesMissingResults,
  ...brokenRuns,
];
