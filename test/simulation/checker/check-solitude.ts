import { SUSPECT_LOSSES } from "../../../src/worker/solitude.ts";
import type { Settings } from "../settings.ts";
import { type ItemRecord, LARGEST_MARGIN, type LeaseRecord } from "./lease-record.ts";
import type { Troubles } from "./troubles.ts";
import type { Findings } from "./violation.ts";

interface Work {
  readonly record: LeaseRecord;
  readonly item: ItemRecord;
  readonly from: number;
  readonly until: number;
}

/**
 * An item that was lost so often runs alone: nothing else of a worker of its process is under way when it begins, and nothing begins before it has
 * ended. What a worker leaves behind that was stopped is no worker's any more.
 *
 * @returns how many ran alone
 */
export function checkSolitude(
  records: Iterable<LeaseRecord>,
  settings: Settings,
  troubles: Troubles,
  findings: Findings,
): number {
  let count = 0;
  const byProcess = Map.groupBy(records, ({ process }) => process);
  const all = [...byProcess.values()].flat().flatMap((record) =>
    record.items.flatMap((item): readonly Work[] => {
      if (item.started === undefined) return [];
      const stop = troubles.stopOf(record.worker);
      const until = Math.min(item.finished?.at ?? Infinity, stop?.at ?? Infinity);
      return [{ record, item, from: item.started.at, until }];
    }),
  );
  for (const [process, works] of Map.groupBy(all, ({ record }) => record.process)) {
    for (const alone of works) {
      if (alone.item.losses < SUSPECT_LOSSES || alone.item.attempt > settings.attempts) continue;
      count += 1;
      for (const other of works) {
        if (other === alone || other.until <= alone.from || other.from >= alone.until) continue;
        // Two that came and went within one moment are told apart by their order.
        if (other.from === alone.from && works.indexOf(other) < works.indexOf(alone) && other.until === alone.from)
          continue;
        const says = `${process} worked on item ${other.item.token} beside item ${alone.item.token}, whose lease was lost ${alone.item.losses} times`;
        findings.add("solitude", Math.max(alone.from, other.from), alone.record.key, says);
      }
      checkLet(alone, byProcess.get(process) ?? [], troubles, findings);
    }
  }
  return count;
}

/** A settlement is not tried again when the lease is nearly over. */
const LAST_TRY_MS = 110;

/** If it kills its process, no other key may lose its lease with it: what the process had is settled by then, or over. */
function checkLet(alone: Work, ofProcess: readonly LeaseRecord[], troubles: Troubles, findings: Findings): void {
  for (const other of ofProcess) {
    const [first] = other.items;
    const [heard] = other.told;
    if (other === alone.record || first === undefined || heard === undefined || heard.at >= alone.until) continue;
    // It waits for its turn to run alone.
    if (first.losses >= SUSPECT_LOSSES || (other.answeredAt ?? Infinity) <= alone.from) continue;
    if ((troubles.stopOf(other.worker)?.at ?? Infinity) <= Math.max(alone.from, heard.at)) continue;
    if (heard.at > alone.from) {
      const says = `${other.process} was given lease #${other.number} on ${other.key} while item ${alone.item.token} ran, whose lease was lost ${alone.item.losses} times`;
      findings.add("solitude", heard.at, alone.record.key, says);
      continue;
    }
    const wall = troubles.between(other.process, heard.at, alone.from).some(({ kind }) => kind === "clock step");
    if (wall || alone.from >= surelyUntil(other, alone.from) - LAST_TRY_MS) continue;
    const says = `${other.process} began item ${alone.item.token}, whose lease was lost ${alone.item.losses} times, and still had lease #${other.number} on ${other.key}`;
    findings.add("solitude", alone.from, alone.record.key, says);
  }
}

/** The lease was certain until then, for what its process had heard. */
function surelyUntil({ told, leaseMs, items }: LeaseRecord, at: number): number {
  const endedAt = items.findLast(({ started }) => started !== undefined)?.finished?.at ?? Infinity;
  let until = -Infinity;
  for (const one of told) {
    // Heard too late, a renewal changes nothing any more; also when there is only the end to be written.
    if (one.at > at || (until > -Infinity && one.at >= Math.min(until, endedAt))) continue;
    until = Math.max(until, one.since + leaseMs * (1 - LARGEST_MARGIN));
  }
  return until;
}
