import type { Clock } from "../domain/clock.ts";
import { Bell } from "./bell.ts";
import { Delays } from "./delays.ts";
import type { LockCells } from "./lock-cells.ts";
import { Lookout } from "./lookout.ts";
import { isOutage, OUTAGE_PAUSE_MS } from "./outage.ts";
import type { LockReport } from "./port.ts";
import { isSameReport, lockReport } from "./reports.ts";
import { everyone } from "./rules.ts";
import type { Sessions } from "./sessions.ts";

interface Parts {
  readonly cells: LockCells;
  readonly sessions: Sessions;
  readonly clock: Clock;
}

/** Reports how a lock stands, now and after every change, until the signal fires. An outage is waited out. */
export async function followLock(
  { cells, sessions, clock }: Parts,
  name: string,
  changed: (report: LockReport | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  const bell = new Bell(clock);
  const delays = new Delays(clock);
  const lookout = new Lookout(sessions, clock);
  let last: { readonly report: LockReport | undefined } | undefined;
  /** Sessions that are over never come back, and their holders may stand in the record until somebody wants the lock. */
  let dead: ReadonlySet<string> = new Set();
  let watch: { stop(): void } | undefined;
  const look = async (): Promise<number> => {
    const { record } = await cells.read(name);
    const moment = delays.now();
    const present = everyone(record);
    const found = await lookout.findDead(present.filter(({ session }) => !dead.has(session)));
    dead = new Set(present.map(({ session }) => session).filter((session) => dead.has(session) || found.has(session)));
    const spent = await sessions.findSpent(record?.holders ?? [], dead);
    const report = lockReport(name, record, { isDead: (id) => dead.has(id), isSpent: (id) => spent.has(id) }, moment);
    if (signal.aborted) return 0;
    if (last === undefined || !isSameReport(last.report, report)) changed(report);
    last = { report };
    return Math.min(lookout.nextMs(), moment.nextMs(record));
  };
  signal.addEventListener("abort", bell.ring);
  try {
    while (!signal.aborted) {
      try {
        watch ??= await cells.watch(name, bell.ring);
        await bell.next(await look());
      } catch (error) {
        if (!isOutage(error)) throw error;
        await bell.next(OUTAGE_PAUSE_MS);
      }
    }
  } finally {
    watch?.stop();
    signal.removeEventListener("abort", bell.ring);
  }
}
