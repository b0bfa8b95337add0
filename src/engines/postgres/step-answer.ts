import type { Row } from "./link.ts";
import { integer } from "./rows.ts";

/** The kinds of rows of a step, but for those that hand out keys (`grants.ts`). */
const LOST = 1;
const WORK = 2;
const OUTCOMES = 3;
const LEARNT = 4;

interface QueueNews {
  readonly queue: number;
  /** Others were told. */
  readonly rung: boolean;
}

export interface StepAnswer {
  /** Positions of settlements, counted from 1. */
  readonly lost: ReadonlySet<number>;
  readonly work: readonly QueueNews[];
  readonly outcomes: readonly QueueNews[];
  /** What the next claim should know. */
  readonly learnt: readonly Row[];
}

export function readAnswer(rows: readonly Row[]): StepAnswer {
  const lost = new Set<number>();
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
    }
  }
  return { lost, work, outcomes, learnt };
}
