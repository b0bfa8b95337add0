/** What was seen in one run, and what must be true of it at every moment. */
import type { StopReport } from "../../../../src/index.ts";
import type { RetryPolicy } from "../../../../src/domain/retry.ts";
import type { HeldLease } from "../../../../src/worker/held-item.ts";
import type { Act } from "./plan.ts";
import type { WorkProcess } from "./process.ts";

export interface WorkerNote {
  readonly process: WorkProcess;
  readonly concurrency: number;
  readonly retry: RetryPolicy;
  readonly timeoutMs: number | undefined;
  readonly leaseMs: number;
  readonly runs: RunNote[];
  startedAt: number;
  stopAt: number | undefined;
  /** Handlers may go on until then. */
  graceUntil: number;
  report: StopReport | undefined;
  stoppedAt: number | undefined;
}

export interface RunNote {
  readonly worker: WorkerNote | undefined;
  readonly process: WorkProcess;
  readonly id: string;
  readonly token: number;
  readonly key: string;
  readonly attempt: number;
  readonly lease: HeldLease;
  readonly from: number;
  readonly act: Act;
  endedAt: number | undefined;
  /** Code of the reason of its signal, when the handler ended. */
  reason: string | undefined;
}

export interface ItemNote {
  readonly id: string;
  readonly token: number;
  readonly key: string;
  readonly dueAt: number;
  /** Of the usual level, without delay or a mode of its own. */
  readonly isPlain: boolean;
  readonly submittedAt: number;
  readonly acceptedAt: number;
  /** When, and with which answer. */
  readonly cancels: { readonly at: number; readonly answer: string }[];
  isReplaced: boolean;
}

export class Notes {
  readonly runs: RunNote[] = [];
  readonly workers: WorkerNote[] = [];
  readonly items: Map<string, ItemNote> = new Map();
  readonly problems: string[] = [];
  /** Keys that somebody holds. */
  readonly held: Set<string> = new Set();
  readonly isCalm: boolean;

  constructor(isCalm: boolean) {
    this.isCalm = isCalm;
  }

  blame(at: number, says: string): void {
    this.problems.push(`at ${at.toFixed(1)} ms: ${says}`);
  }

  begin(run: RunNote): RunNote {
    const { from, key, worker, id, attempt } = run;
    const others = this.runs.filter((one) => one.key === key && one.endedAt === undefined && one.lease.leftMs > 0);
    if (others.length > 0)
      this.blame(from, `${id} begins while ${others.map((one) => one.id).join(", ")} runs on ${key}`);
    if (this.held.has(key) && this.isCalm) this.blame(from, `${id} begins though ${key} is held`);
    if (worker !== undefined) {
      const running = worker.runs.filter(({ endedAt }) => endedAt === undefined).length + 1;
      if (running > worker.concurrency) this.blame(from, `${running} handlers run, and not ${worker.concurrency}`);
      if (worker.stopAt !== undefined && from > worker.stopAt) this.blame(from, `${id} begins after the stop`);
      // One that was lost before it was begun counts in the store, and not with the process that knows of it.
      const before = this.runs.filter((one) => one.id === id && one.attempt < attempt);
      const seen = new Set(before.map((one) => one.attempt)).size + 1;
      if (seen > worker.retry.attempts) this.blame(from, `${id} is tried for the ${seen}th time`);
      if (run.lease.leftMs > worker.leaseMs) this.blame(from, `the lease of ${id} is longer than ${worker.leaseMs} ms`);
      worker.runs.push(run);
    }
    const item = this.items.get(id);
    if (item !== undefined && from < item.dueAt) this.blame(from, `${id} begins before its delay is over`);
    this.runs.push(run);
    return run;
  }

  /** After each event. */
  look(at: number): void {
    for (const run of this.runs) {
      if (run.endedAt !== undefined) continue;
      const { lease, worker, id } = run;
      if (this.isCalm && lease.leftMs === 0 && worker?.timeoutMs === undefined && worker?.stoppedAt === undefined)
        this.blame(at, `the lease of ${id} is lost though the store answers`);
      if (lease.leftMs === 0 && !lease.signal.aborted && worker?.stoppedAt === undefined && at - run.from > TELL_MS)
        this.#silent(run, at);
      if (worker === undefined) continue;
      const { timeoutMs, stopAt, graceUntil } = worker;
      const reason = codeOf(lease.signal.reason);
      if (reason === "STOPPING" && (stopAt === undefined || at < graceUntil - TELL_MS))
        this.blame(at, `${id} is to stop before the grace is over`);
      if (stopAt !== undefined && at > graceUntil + TELL_MS && !lease.signal.aborted && worker.stoppedAt === undefined)
        this.blame(at, `${id} is not told to stop`);
      if (timeoutMs !== undefined && !run.act.isAtOnce) {
        // Not renewed any more: who ignores the signal loses the key.
        if (at > run.from + timeoutMs + worker.leaseMs + SOON_MS && lease.leftMs > 0)
          this.blame(at, `${id} keeps its key long after its timeout`);
        if (reason === "HANDLER_TIMEOUT" && at < run.from + timeoutMs)
          this.blame(at, `${id} runs into its timeout too early`);
        if (at > run.from + timeoutMs + TELL_MS && !lease.signal.aborted && worker.stoppedAt === undefined)
          this.blame(at, `${id} does not run into its timeout`);
      }
    }
  }

  readonly #since = new WeakMap<RunNote, number>();

  #silent(run: RunNote, at: number): void {
    const since = this.#since.get(run) ?? at;
    this.#since.set(run, since);
    if (at - since > TELL_MS) this.blame(at, `${run.id} is not told that its lease is lost`);
  }
}

const SOON_MS = 100;
/** Timers are of whole milliseconds. */
export const TELL_MS = 3;

export function codeOf(error: unknown): string | undefined {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : undefined;
}
