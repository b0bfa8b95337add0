import type { Guarantee } from "../checker/violation.ts";
import type { MakePlant } from "./plant.ts";
import { denyCancels, holdAnything, ignoreDelays, ignoreLimits, wakeLate } from "./wrong-answers.ts";
import { handOutWhilePaused, ignoreUrgency } from "./wrong-choices.ts";
import { giveUpTooSoon, grantTooEarly, ignoreDeadline, stampLate } from "./wrong-clocks.ts";
import { countReleases, forgetAttempts, forgetSettlements } from "./wrong-counts.ts";
import { renewAnyFence, resetFences, settleAnyFence } from "./wrong-fences.ts";
import {
  blameAttempts,
  blameLosses,
  cancelCovered,
  dropReports,
  forgetCovered,
  forgetLosses,
  ignoreLosses,
  keepTooLong,
  repeatInRun,
  runTooLong,
  settleRunsOfAnyFence,
  shuffleRuns,
} from "./wrong-runs.ts";
import { acceptTwice, dropSubmissions, swapOrder } from "./wrong-submits.ts";
import { failOnStop, swallowFailures } from "./wrong-workers.ts";

export interface PlantedBug {
  readonly name: string;
  readonly make: MakePlant;
  /** What it breaks: the first violation that the checker finds must be one of these. */
  readonly breaks: readonly Guarantee[];
}

/** Each must be found within a few hundred seeds, or the checker proves nothing. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  { name: "the store grants before a lease is over", make: grantTooEarly, breaks: ["G1 exclusive"] },
  { name: "settle does not compare fences", make: settleAnyFence, breaks: ["G2 fenced"] },
  { name: "renew does not compare fences", make: renewAnyFence, breaks: ["G2 fenced"] },
  { name: "fences start over at a restart", make: resetFences, breaks: ["G2 fenced"] },
  { name: "one submission in fifty is dropped", make: dropSubmissions, breaks: ["G4 nothing lost", "G6 no blocking"] },
  {
    name: "one settlement in fifty is answered and not made",
    make: forgetSettlements,
    breaks: ["G6 no blocking", "G9 idempotent"],
  },
  { name: "two submissions change places", make: swapOrder, breaks: ["G5 ordered"] },
  { name: "a known id is accepted again", make: acceptTwice, breaks: ["G9 idempotent"] },
  { name: "the worker ignores its local deadline", make: ignoreDeadline, breaks: ["deadline"] },
  { name: "the driver reads its clock after the reply", make: stampLate, breaks: ["deadline"] },
  { name: "attempts are not counted", make: forgetAttempts, breaks: ["attempts"] },
  { name: "giving an item back burns an attempt", make: countReleases, breaks: ["attempts"] },
  { name: "urgent items wait like the others", make: ignoreUrgency, breaks: ["G5 ordered", "G8 urgent first"] },
  { name: "paused keys are handed out", make: handOutWhilePaused, breaks: ["pause"] },
  { name: "limits are ignored", make: ignoreLimits, breaks: ["G10 bounded"] },
  { name: "delays are ignored", make: ignoreDelays, breaks: ["delays"] },
  { name: "cancelling gives the wrong answer", make: denyCancels, breaks: ["cancel"] },
  { name: "a key in work can be held", make: holdAnything, breaks: ["G1 exclusive"] },
  { name: "claims are woken late", make: wakeLate, breaks: ["G6 no blocking"] },
  { name: "a worker that stops burns attempts", make: failOnStop, breaks: ["stop"] },
  { name: "a worker calls a failure done", make: swallowFailures, breaks: ["endings"] },
  { name: "a worker discards work that was in time", make: giveUpTooSoon, breaks: ["endings", "duplicates"] },
  {
    name: "what a run left is forgotten",
    make: forgetCovered,
    breaks: ["G4 nothing lost", "G5 ordered", "G6 no blocking"],
  },
  { name: "an item of a run is begun twice", make: repeatInRun, breaks: ["runs"] },
  { name: "a run is handed out in another order", make: shuffleRuns, breaks: ["G5 ordered"] },
  { name: "a run is settled under an old fence", make: settleRunsOfAnyFence, breaks: ["G2 fenced"] },
  { name: "what a lease covers is cancelled, and runs", make: cancelCovered, breaks: ["cancel"] },
  { name: "a lost lease counts for all that it covered", make: blameLosses, breaks: ["attempts"] },
  { name: "a lost lease costs all that it covered an attempt", make: blameAttempts, breaks: ["attempts"] },
  { name: "lost leases are not counted", make: forgetLosses, breaks: ["attempts"] },
  { name: "what may kill its process runs beside others", make: ignoreLosses, breaks: ["solitude"] },
  { name: "an item of a run is begun too late", make: runTooLong, breaks: ["runs"] },
  { name: "a driver does not pass on which items of a run have ended", make: dropReports, breaks: ["endings", "runs"] },
  { name: "keys are kept that no slot is free for", make: keepTooLong, breaks: ["runs"] },
];
