import { type ChildProcess, spawn } from "node:child_process";
import type { CommandEnd, Deadlines, RunRequest } from "./messages.ts";
import { leftMs } from "./moments.ts";
import { GONE_MS, groupLives, HAS_GROUPS, LOOK_MS, signalGroup } from "./process-group.ts";
import { StderrTail } from "./stderr-tail.ts";

/** What a command leaves running when it ends by itself gets this long after SIGTERM. */
const LEFTOVERS_MS = 1_000;
/** Between SIGTERM and SIGKILL when the lease runs out. Most leases leave less: nobody else can have the key before. */
const LONGEST_PATIENCE_MS = 5_000;
/** A wall clock that was set, or a machine that slept, moves a deadline without any timer noticing. */
const LONGEST_WAIT_MS = 250;

/**
 * One command and everything it started.
 *
 *   running ──told to end, its lease runs out, or it ended and left something──▶ ending (SIGTERM)
 *   ending ──time is up──▶ killed (SIGKILL)
 *   running, ending, killed ──the group is empty──▶ over
 */
export class GuardedCommand {
  readonly #child: ChildProcess;
  readonly #tail: StderrTail;
  readonly #onOver: (end: CommandEnd) => void;
  #deadlines: Deadlines;
  #state: "running" | "ending" | "killed" | "over" = "running";
  /** By the monotonic clock; counts in state ending and killed. */
  #patienceEndsAt = Infinity;
  #end: CommandEnd | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(request: RunRequest, stderr: NodeJS.WritableStream, onOver: (end: CommandEnd) => void) {
    this.#deadlines = request.deadlines;
    this.#onOver = onOver;
    this.#child = spawn(request.command, request.commandArguments, {
      env: { ...process.env, ...request.environment },
      stdio: request.input === undefined ? "inherit" : ["pipe", "inherit", "pipe"],
      // A group of its own, so that Ctrl-C in a terminal reaches the worker only, and so that it can be ended as a whole.
      detached: HAS_GROUPS,
      windowsHide: true,
    });
    this.#tail = new StderrTail(this.#child.stderr, stderr);
    // Reading the payload is the command's choice.
    this.#child.stdin?.on("error", () => undefined);
    if (request.input !== undefined) this.#child.stdin?.end(request.input);
    this.#child.on("error", (error: NodeJS.ErrnoException) => {
      if (this.pid !== undefined) return;
      this.#finish({ type: "not-started", code: error.code ?? "UNKNOWN", message: error.message });
    });
    this.#child.on("exit", (code, signal) => void this.#exited(code, signal));
    this.#step();
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Passed on from whoever sent it to us. */
  signal(signal: NodeJS.Signals): void {
    if (this.#state !== "over") this.#signal(signal);
  }

  /** The worker is alive and has renewed the lease. */
  renewed(deadlines: Deadlines): void {
    this.#deadlines = deadlines;
  }

  /** SIGTERM now, SIGKILL after the time given, or when the lease runs out if that is sooner. */
  end(killAfterMs: number): void {
    const killAt = monotonicMs() + killAfterMs;
    if (this.#state === "running") {
      this.#state = "ending";
      this.#patienceEndsAt = killAt;
      this.#signal("SIGTERM");
    } else if (this.#state === "ending") {
      this.#patienceEndsAt = Math.min(this.#patienceEndsAt, killAt);
    }
    this.#step();
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    const stderr = await this.#tail.drained();
    this.#end =
      code === null ? { type: "killed", signal: signal ?? "unknown", stderr } : { type: "exited", code, stderr };
    this.#step();
  }

  #step(): void {
    clearTimeout(this.#timer);
    if (this.#state === "over" || this.pid === undefined) return;
    if (this.#end !== undefined && !groupLives(this.pid)) return this.#finish(this.#end);
    const nowMs = monotonicMs();
    if (this.#state === "running") {
      // Fixed now: a worker that comes back late with a renewal must not give a command more time that it was told to end.
      if (leftMs(this.#deadlines.endAt) <= 0) {
        return this.end(Math.min(leftMs(this.#deadlines.killAt), LONGEST_PATIENCE_MS));
      }
      if (this.#end !== undefined) return this.end(LEFTOVERS_MS);
    }
    if (this.#state === "ending" && Math.min(this.#patienceEndsAt - nowMs, leftMs(this.#deadlines.killAt)) <= 0) {
      this.#state = "killed";
      this.#patienceEndsAt = nowMs + GONE_MS;
      this.#signal("SIGKILL");
    }
    if (this.#state === "killed" && this.#end !== undefined && nowMs >= this.#patienceEndsAt)
      return this.#finish(this.#end);
    const waitMs = this.#state === "running" ? Math.min(leftMs(this.#deadlines.endAt), LONGEST_WAIT_MS) : LOOK_MS;
    this.#timer = setTimeout(() => this.#step(), Math.max(1, waitMs));
  }

  #finish(end: CommandEnd): void {
    if (this.#state === "over") return;
    this.#state = "over";
    clearTimeout(this.#timer);
    this.#tail.close();
    this.#onOver(end);
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) signalGroup(this.pid, signal);
  }
}

function monotonicMs(): number {
  return performance.now();
}
