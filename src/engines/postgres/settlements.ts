import { InvalidInput } from "../../domain/errors.ts";
import type { Lease, Settlement } from "../../engine/port.ts";
import { bigints, byteas, integers, texts, tids } from "./arrays.ts";
import { columnsOf } from "./bodies.ts";
import type { Report } from "./train.ts";

/** The arguments of a step that say which holders have gone on by themselves, and how far. */
export function trainArguments(reports: readonly Report[]): readonly unknown[] {
  const moved = reports.filter(({ done }) => done.length > 0).toSorted((a, b) => a.train.key - b.train.key);
  if (moved.length === 0) return [null, null, null, null, null, null, null, null, null];
  const left = moved.flatMap(({ train, done }) => done.map((car) => ({ key: train.key, car })));
  return [
    bigints(moved.map(({ train }) => train.key)),
    bigints(moved.map(({ was }) => was)),
    bigints(moved.map(({ at }) => at.grant.lease.fence)),
    bigints(moved.map(({ at }) => at.ord)),
    tids(moved.map(({ at }) => at.spot)),
    integers(moved.map(({ done }) => done.length)),
    bigints(left.map(({ key }) => key)),
    bigints(left.map(({ car }) => car.ord)),
    tids(left.map(({ car }) => car.spot)),
  ];
}

/** The arguments of a step that say which leases end, and how: nearly always everything is simply done, and then two arrays say it. */
export function settleArguments(settlements: readonly Settlement[]): readonly unknown[] {
  if (settlements.length === 0) return [null, null, null, null, null, null, null, null];
  const leases = [
    bigints(settlements.map(({ lease }) => keyOf(lease))),
    bigints(settlements.map(({ lease }) => lease.fence)),
  ];
  if (settlements.every(({ ending }) => ending.type === "done" && ending.result === undefined)) {
    return [...leases, null, null, null, null, null, null];
  }
  const results = settlements.map(({ ending }) =>
    ending.type === "done" && ending.result !== undefined ? columnsOf(ending.result) : undefined,
  );
  return [
    ...leases,
    texts(settlements.map(({ ending }) => (ending.type === "retry" ? ending.place : ending.type))),
    bigints(settlements.map(({ ending }) => (ending.type === "retry" ? Math.ceil(ending.delayMs) : 0))),
    texts(settlements.map(({ ending }) => ("failure" in ending ? JSON.stringify(ending.failure) : null))),
    // A result that is JSON has no type in its columns; that there is one must be said here.
    texts(results.map((result) => (result === undefined ? null : (result.type ?? "")))),
    texts(results.map((result) => result?.text ?? null)),
    byteas(results.map((result) => result?.bytes ?? null)),
  ];
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
