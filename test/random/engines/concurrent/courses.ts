import type * as port from "../../../../src/engine/port.ts";
import { type History, type Leased, type Renewed, runOf, type Settled, type Span } from "./history.ts";

/** An item ran, by the reports of its holder, and this attempt of it counts. */
export interface Turn extends Span {
  readonly leased: Leased;
  readonly lease: port.Lease;
  readonly item: port.Item;
  /** What the report said that ended it. Undefined: nothing did while the lease lasted. */
  readonly end: TurnEnd | undefined;
}

export interface TurnEnd extends Span {
  readonly ending: port.Ending;
}

/** What became of the run of one lease. */
export interface Course {
  readonly leased: Leased;
  readonly turns: readonly Turn[];
  /** A reply was lost, so that from there on nobody can say how far the run has come. */
  readonly isOpen: boolean;
  /** The report that gave back what had not begun, and what that was. */
  readonly over: (Span & { readonly left: readonly port.Item[] }) | undefined;
}

export function coursesOf(history: History): readonly Course[] {
  const reports = Map.groupBy([...history.renewed, ...history.settled], ({ leased }) => leased);
  return history.leased
    .filter(({ item }) => item !== undefined)
    .map((leased) =>
      courseOf(
        leased,
        (reports.get(leased) ?? []).toSorted((a, b) => a.order - b.order),
      ),
    );
}

function courseOf(leased: Leased, reports: readonly (Renewed | Settled)[]): Course {
  const { lease } = leased;
  let covered = runOf(leased);
  let over: Course["over"];
  let begun: Span = leased;
  const turns: Turn[] = [];
  const end = (report: Span, ending: port.Ending): void => {
    const [item] = covered;
    if (item === undefined) return;
    turns.push({ leased, lease, item, begun: begun.begun, ended: begun.ended, end: { ...spanOf(report), ending } });
    covered = covered.slice(1);
    begun = report;
  };
  for (const report of reports) {
    if (report.result === undefined && (isSettled(report) || report.before !== undefined))
      return { leased, turns, isOpen: true, over };
    const isMade = isSettled(report) ? report.result === "settled" : report.result?.ok === true;
    if (!isMade || report.before === undefined) continue;
    const known = turns.length;
    for (const { id, ending } of report.before) if (covered.length > 1 && covered[0]?.id === id) end(report, ending);
    over ??= { ...spanOf(report), left: covered.slice(1) };
    covered = covered.slice(0, 1);
    if (!isSettled(report)) continue;
    // One that this very report counts, and gives back, was not begun.
    const isUntouched = report.ending.type === "release" && turns.length > known;
    if (isUntouched) over = { ...over, left: [...covered, ...over.left] };
    else end(report, report.ending);
    return { leased, turns, isOpen: false, over };
  }
  const [running] = covered;
  const { begun: from, ended: until } = begun;
  if (running !== undefined) turns.push({ leased, lease, item: running, begun: from, ended: until, end: undefined });
  return { leased, turns, isOpen: false, over };
}

function isSettled(report: Renewed | Settled): report is Settled {
  return "ending" in report;
}

function spanOf({ begun, ended }: Span): Span {
  return { begun, ended };
}
