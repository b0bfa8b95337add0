import { BatonError, show } from "../../domain/errors.ts";
import type { HolderReport, LockReport } from "../../locks/port.ts";

export type BusyReason = "held" | "delayed" | "retired";

/** The lock was not to be had in the time given. Nothing is held. */
export class LockBusy extends BatonError {
  readonly lock: string;
  /** `held`: by others. `delayed`: its last holder vanished. `retired`: the work that it protected is done. */
  readonly why: BusyReason;
  /** As they were seen just after the refusal. */
  readonly holders: readonly HolderReport[];

  constructor(lock: string, why: BusyReason, report: LockReport | undefined) {
    super("LOCK_BUSY", `Lock ${show(lock)} was not acquired: ${explain(why, report)} Nothing was done.`);
    this.lock = lock;
    this.why = why;
    this.holders = report?.holders ?? [];
  }
}

function explain(why: BusyReason, report: LockReport | undefined): string {
  switch (why) {
    case "held":
      return `${holdersOf(report)} Wait longer, or try again later.`;
    case "delayed":
      return `its last holder vanished without letting go, and nobody gets it${until(report?.delayedUntil)}.`;
    case "retired":
      return `the work that it protects is done, and nobody gets it again${until(report?.retiredUntil)}.`;
  }
}

function holdersOf(report: LockReport | undefined): string {
  const [first, ...others] = report?.holders ?? [];
  if (first === undefined) return "others have it.";
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `${show(first.owner)} has held it since ${new Date(first.since).toISOString()} (fence ${first.fence})${more}.`;
}

function until(at: number | undefined): string {
  return at === undefined ? " for a while" : ` before ${new Date(at).toISOString()}`;
}
