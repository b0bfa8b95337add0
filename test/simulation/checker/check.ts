import type { Happening, LastWords } from "../history.ts";
import type { Settings } from "../settings.ts";
import { checkEnd, checkSubmitters } from "./check-end.ts";
import { checkBeliefs, checkEffects } from "./check-leases.ts";
import { StoreChecker } from "./check-store.ts";
import { checkDuplicates, checkStarts } from "./check-repeats.ts";
import { checkRun } from "./check-runs.ts";
import { checkSolitude } from "./check-solitude.ts";
import { type LeaseRecord, LeaseRecords } from "./lease-record.ts";
import { Troubles } from "./troubles.ts";
import { Findings, type Violation } from "./violation.ts";

export interface Verdict {
  /** Earliest first. */
  readonly violations: readonly Violation[];
  readonly statistics: Statistics;
}

export interface Statistics {
  readonly faults: ReadonlyMap<string, number>;
  readonly accepted: number;
  readonly started: number;
  /** Of these, those that began behind another one of their run. */
  readonly further: number;
  /** Renewals that told how items of a run ended, because the next one took long. */
  readonly reports: number;
  /** Items that ran alone in their process, because their lease was lost before. */
  readonly alone: number;
  /** Runs that succeeded and did not count, all explained by a fault or reported as violations. */
  readonly duplicates: number;
  /** Effects that a register refused for their fence: what fencing is for. */
  readonly rejectedEffects: number;
}

/** Looks at a history, and at nothing else. */
export function check(settings: Settings, happenings: readonly Happening[], last: LastWords): Verdict {
  const findings = new Findings();
  const store = new StoreChecker(settings, findings);
  const leases = new LeaseRecords();
  const troubles = new Troubles();
  for (const happening of happenings) {
    store.follow(happening);
    leases.follow(happening);
    troubles.follow(happening);
  }
  store.finish();
  const records = [...leases.all.values()];
  const begun = records.flatMap(({ items }) => items).filter(({ started }) => started !== undefined);
  noteUnbegun(records);
  checkBeliefs(records, findings);
  for (const record of records) {
    checkEffects(record, troubles, findings);
    checkRun(record, settings, troubles, findings);
  }
  checkStarts(records, settings, troubles, findings);
  const alone = checkSolitude(records, settings, troubles, findings);
  const duplicates = checkDuplicates(records, settings, troubles, findings);
  checkSubmitters(happenings, store.model, settings, findings);
  checkEnd(store.model, last, happenings.at(-1)?.at ?? 0, findings);
  return {
    violations: findings.violations.toSorted((a, b) => a.at - b.at),
    statistics: {
      faults: troubles.counts,
      accepted: store.model.items.size,
      started: begun.length,
      further: begun.filter(({ place }) => place > 0).length,
      reports: leases.reports,
      alone,
      duplicates,
      rejectedEffects: store.rejectedEffects,
    },
  };
}

/** What a process was granted and lost without having begun it. The store counts the attempt, and the process knows better. */
function noteUnbegun(records: readonly LeaseRecord[]): void {
  const counts = new Map<string, number>();
  for (const { process, items } of records.toSorted((a, b) => a.madeAt - b.madeAt)) {
    for (const item of items) {
      const name = `${process} ${item.token}`;
      const before = counts.get(name) ?? 0;
      item.unbegunBefore = before;
      if (item.place === 0 && item.started === undefined && item.ended === undefined) counts.set(name, before + 1);
    }
  }
}
