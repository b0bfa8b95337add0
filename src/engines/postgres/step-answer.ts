import type { Settlement } from "../../engine/port.ts";
import type { News } from "./lane.ts";
import type { Row } from "./link.ts";
import { integer } from "./rows.ts";
import { type Report, Train } from "./train.ts";

/** The kinds of rows of a step, but for those that hand out keys (`grants.ts`). */
const LOST = 1;
const WORK = 2;
const OUTCOMES = 3;
const LEARNT = 4;
const LOST_TRAIN = 6;
const HALTED = 7;

interface QueueNews {
  readonly queue: number;
  /** Others were told. */
  readonly rung: boolean;
}

export interface StepAnswer {
  /** Positions of settlements, counted from 1. */
  readonly lost: ReadonlySet<number>;
  /** Keys whose trains were lost, or should begin nothing more. */
  readonly lostTrains: ReadonlySet<number>;
  readonly halted: ReadonlySet<number>;
  readonly work: readonly QueueNews[];
  readonly outcomes: readonly QueueNews[];
  /** What the next claim should know. */
  readonly learnt: readonly Row[];
}

export function readAnswer(rows: readonly Row[]): StepAnswer {
  const lost = new Set<number>();
  const lostTrains = new Set<number>();
  const halted = new Set<number>();
  const work: QueueNews[] = [];
  const outcomes: QueueNews[] = [];
  const learnt: Row[] = [];
  for (const row of rows) {
    switch (integer(row, 0)) {
      case LOST:
        lost.add(integer(row, 1));
        break;
      case WORK:
        work.push({ queue: integer(row, 1), rung: integer(row, 3) === 1 });
        break;
      case OUTCOMES:
        outcomes.push({ queue: integer(row, 1), rung: integer(row, 3) === 1 });
        break;
      case LEARNT:
        learnt.push(row);
        break;
      case LOST_TRAIN:
        lostTrains.add(integer(row, 1));
        break;
      case HALTED:
        halted.add(integer(row, 1));
        break;
    }
  }
  return { lost, lostTrains, halted, work, outcomes, learnt };
}

/** What is to be said of trains is drawn up when the store can hear it: what is done by then goes along. */
export function told(news: readonly News[]): {
  readonly reports: readonly Report[];
  readonly settlements: readonly Settlement[];
} {
  const reports: Report[] = [];
  const settlements: Settlement[] = [];
  for (const one of news) {
    if (!(one instanceof Train)) settlements.push(one);
    else if (!one.isOver && !one.isBeingTold) {
      const report = one.report();
      reports.push(report);
      if (report.last !== undefined) settlements.push(report.last);
    }
  }
  return { reports, settlements };
}
