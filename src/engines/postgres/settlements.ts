import { InvalidInput } from "../../domain/errors.ts";
import { briefFailure } from "../../domain/failure.ts";
import { isSimplyDone } from "../../engine/attempts.ts";
import type { Ending, Lease, Renewal, Settlement } from "../../engine/port.ts";
import { bigints, byteas, integers, texts } from "./arrays.ts";
import { columnsOf } from "./bodies.ts";

/** The arguments of a step that say which leases end, and how: nearly always everything is simply done, and then two arrays say it. */
export function settleArguments(settlements: readonly Settlement[]): readonly unknown[] {
  if (settlements.length === 0) return [null, null, null, null, null, null, null, null];
  const leases = [
    bigints(settlements.map(({ lease }) => keyOf(lease))),
    bigints(settlements.map(({ lease }) => lease.fence)),
  ];
  if (settlements.every(({ ending }) => isSimplyDone(ending))) {
    return [...leases, null, null, null, null, null, null];
  }
  const endings = settlements.map(({ ending }) => ending);
  const delays = bigints(endings.map((ending) => (ending.type === "retry" ? Math.ceil(ending.delayMs) : 0)));
  const [hows, ...rest] = columnsOfEndings(endings);
  return [...leases, hows, delays, ...rest];
}

/** The arguments that say which items of runs ended before the last one, lease by lease. Undefined: nothing is said of them. */
export function endedArguments(reports: readonly Pick<Renewal, "ended">[]): readonly unknown[] {
  if (reports.every(({ ended }) => ended === undefined)) return [null, null, null, null, null, null, null];
  const all = reports.flatMap(({ ended = [] }) => ended);
  const endings = all.map(({ ending }) => ending);
  return [
    integers(reports.map(({ ended }) => ended?.length ?? -1)),
    texts(all.map(({ id }) => id)),
    ...(endings.every(isSimplyDone) ? [null, null, null, null, null] : columnsOfEndings(endings)),
  ];
}

/** What becomes of items, why, and with which results. */
function columnsOfEndings(endings: readonly Ending[]): readonly unknown[] {
  const results = endings.map((ending) =>
    ending.type === "done" && ending.result !== undefined ? columnsOf(ending.result) : undefined,
  );
  return [
    texts(endings.map((ending) => (ending.type === "retry" ? ending.place : ending.type))),
    texts(endings.map(whyOf)),
    // A result that is JSON has no type in its columns; that there is one must be said here.
    texts(results.map((result) => (result === undefined ? null : (result.type ?? "")))),
    // The history of attempts has the failure in brief; it stands where a result would.
    texts(results.map((result, index) => result?.text ?? briefOf(endings[index]))),
    byteas(results.map((result) => result?.bytes ?? null)),
  ];
}

/** Why an item is given up, or why the result of one that is done is missing. */
function whyOf(ending: Ending): string | null {
  if (ending.type === "dead") return JSON.stringify(ending.failure);
  return ending.type === "done" ? (ending.resultMissing ?? null) : null;
}

function briefOf(ending: Ending | undefined): string | null {
  return ending !== undefined && "failure" in ending ? JSON.stringify(briefFailure(ending.failure)) : null;
}

/** The number of the key whose lease it is. */
export function keyOf({ handle }: Lease): number {
  if (typeof handle === "number") return handle;
  throw new InvalidInput("lease", handle, "a lease that this engine gave");
}

/** A lease is ended once: of several settlements of one in a batch the first counts, and the others are lost. */
export function firstOfEach(settlements: readonly Settlement[]): readonly Settlement[] {
  const seen = new Set<number>();
  return settlements.filter(({ lease }) => {
    if (seen.has(lease.fence)) return false;
    seen.add(lease.fence);
    return true;
  });
}
