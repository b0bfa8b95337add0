import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { extname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { groupsWithVariable } from "./linux-processes.ts";
import { type CommandEnd, type Deadlines, type FromGuard, isFromGuard, type ToGuard } from "./messages.ts";
import { deadlinesOf, leftMs, type Tenure } from "./moments.ts";
import { killGroup, LOOK_MS } from "./process-group.ts";

/** Renewals come at a third of the lease; told this often, the guard hears of each well before the old deadline. */
const TELL_SHARE = 1 / 12;
const SHORTEST_TELL_MS = 25;
const LONGEST_TELL_MS = 1_000;
/** A guard that was told to end a command and does not answer for so long is halted or gone: we end it ourselves. */
const GUARD_LATE_MS = 150;

/** What still runs when the guard is let go has so long after SIGTERM, or until its lease runs out if that is sooner. */
const LAST_COMMANDS_MS = 5_000;
/** For the guard to end what is left, and to leave. */
const LEAVE_MS = 7_000;
const UNKNOWN_LOOKS = 5;
/** In the environment of a command: tells its processes from those of every other run, of whatever worker. */
const MARK = "BATON_RUN";
const GUARD_GONE = "SIGKILL, because the process that guards the commands has ended";

export interface GuardOptions {
  readonly leaseMs: number;
  /** Nobody else gets what is protected for this long after a loss. Default 0. */
  readonly delayAfterLossMs?: number;
  /** Where the commands' standard input comes from, if they are not given one each. Default ignore. */
  readonly stdin?: "ignore" | "inherit";
  /** Where the commands' standard output goes. */
  readonly stdout: "inherit" | "stderr";
}

export interface CommandRequest {
  readonly command: string;
  readonly commandArguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Undefined: the command has our standard input and standard error. */
  readonly input?: Uint8Array;
}

interface Pending {
  readonly tenure: Tenure;
  readonly resolve: (end: CommandEnd) => void;
  readonly mark: string;
  deadlines: Deadlines;
  pid: number | undefined;
}

/** The worker's end of the guard. See process.ts for why there is one. */
export class Guard implements AsyncDisposable {
  readonly #options: GuardOptions;
  readonly #pending = new Map<number, Pending>();
  #process: ChildProcess | undefined;
  #ready: PromiseWithResolvers<void> = Promise.withResolvers();
  #teller: NodeJS.Timeout | undefined;
  #runs = 0;
  #isLeaving = false;
  /** Called when the last of the commands is over. */
  #onQuiet: (() => void) | undefined;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  /** Before the first command is to run: a process takes a moment to start. */
  warmUp(): void {
    this.#process ??= this.#start();
  }

  /** When a command would start at once: on a busy machine a lease may run out before its guard has started. */
  async ready(): Promise<void> {
    this.warmUp();
    await this.#ready.promise;
  }

  /** Runs a command for as long as it may. When the signal fires, the command has `killAfterMs` to end. */
  run(request: CommandRequest, tenure: Tenure, killAfterMs: number): Promise<CommandEnd> {
    if (this.#isLeaving) return Promise.resolve({ type: "not-started", code: "STOPPING", message: "its guard leaves" });
    const run = (this.#runs += 1);
    const { signal } = tenure;
    const end = (): void => this.#end(run, killAfterMs);
    return new Promise<CommandEnd>((resolve) => {
      const deadlines = this.#deadlinesOf(tenure);
      const mark = randomUUID();
      this.#pending.set(run, { tenure, resolve, mark, deadlines, pid: undefined });
      this.warmUp();
      const environment = { ...request.environment, [MARK]: mark };
      this.#tell({ type: "run", run, ...request, input: request.input, environment, deadlines });
      this.#tellRegularly();
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    }).finally(() => signal.removeEventListener("abort", end));
  }

  /** Passes a signal on to the commands that run, with everything they started. */
  signal(signal: NodeJS.Signals): void {
    this.#tell({ type: "signal", signal });
  }

  /** Ends what is left, at once. */
  killAll(): void {
    for (const run of this.#pending.keys()) this.#end(run, 0);
  }

  /**
   * Ends what is left, with the time that a command is given, and lets the guard go. The channel stays open until then:
   * the guard takes its end for ours, and hears of leases that are renewed meanwhile.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isLeaving = true;
    await this.#endAll();
    clearInterval(this.#teller);
    const guard = this.#process;
    if (guard === undefined || guard.exitCode !== null || guard.signalCode !== null) return;
    const exited = new Promise<void>((resolve) => guard.once("exit", () => resolve()));
    if (guard.connected) guard.disconnect();
    await Promise.race([exited, wait(LEAVE_MS, undefined, { ref: false })]);
    // It may have a command that even the kernel cannot end; that is no reason to wait for ever.
    guard.unref();
  }

  async #endAll(): Promise<void> {
    if (this.#pending.size === 0) return;
    const quiet = Promise.withResolvers<void>();
    this.#onQuiet = quiet.resolve;
    for (const run of this.#pending.keys()) this.#end(run, LAST_COMMANDS_MS);
    await Promise.race([quiet.promise, wait(LEAVE_MS, undefined, { ref: false })]);
  }

  #start(): ChildProcess {
    // Built, the neighbour is JavaScript; in a clone it is TypeScript, which Node runs as it is.
    const program = join(import.meta.dirname, `process${extname(import.meta.filename)}`);
    const guard = spawn(process.execPath, [program, String(this.#options.leaseMs)], {
      stdio: [this.#options.stdin ?? "ignore", this.#options.stdout === "inherit" ? "inherit" : 2, "inherit", "ipc"],
      serialization: "advanced",
      detached: true,
      windowsHide: true,
    });
    this.#ready = Promise.withResolvers();
    guard.on("message", (message: unknown) => {
      if (isFromGuard(message)) this.#hear(message);
    });
    const gone = (): void => this.#guardIsGone(guard);
    guard.on("error", gone);
    // Not when it exits: what it told before, such as which process a command is, may not have been read by then.
    guard.on("disconnect", gone);
    return guard;
  }

  #hear(message: FromGuard): void {
    if (message.type === "ready") return this.#ready.resolve();
    const pending = this.#pending.get(message.run);
    if (pending === undefined) return;
    if (message.type === "started") pending.pid = message.pid;
    else this.#over(message.run, message.end);
  }

  #over(run: number, end: CommandEnd): void {
    const pending = this.#pending.get(run);
    this.#pending.delete(run);
    if (this.#pending.size === 0) {
      clearInterval(this.#teller);
      this.#teller = undefined;
      this.#onQuiet?.();
    }
    pending?.resolve(end);
  }

  #end(run: number, killAfterMs: number): void {
    const pending = this.#pending.get(run);
    if (pending === undefined) return;
    this.#tell({ type: "end", run, killAfterMs });
    const patienceMs = Math.max(0, Math.min(killAfterMs, leftMs(pending.deadlines.killAt)));
    setTimeout(() => {
      const pid = this.#pending.get(run)?.pid;
      if (pid !== undefined) void this.#kill(run, pid, "SIGKILL");
    }, patienceMs + GUARD_LATE_MS).unref();
  }

  #guardIsGone(guard: ChildProcess): void {
    if (this.#process !== guard) return;
    // The next command gets a new one.
    this.#process = undefined;
    this.#ready.resolve();
    for (const [run, { pid, mark }] of this.#pending) {
      if (pid === undefined) void this.#killUnknown(run, mark);
      else void this.#kill(run, pid, GUARD_GONE);
    }
  }

  /** The guard died between starting a command and telling us. Where that can be found out, it is. */
  async #killUnknown(run: number, mark: string): Promise<void> {
    // More than once: a process that has just been made shows the environment of its parent for a moment.
    for (let look = 0; look < UNKNOWN_LOOKS; look += 1) {
      await Promise.all([...groupsWithVariable(MARK, mark)].map(killGroup));
      await wait(LOOK_MS);
    }
    this.#over(run, { type: "killed", signal: GUARD_GONE, stderr: "" });
  }

  async #kill(run: number, pid: number, signal: string): Promise<void> {
    await killGroup(pid);
    this.#over(run, { type: "killed", signal, stderr: "" });
  }

  #tellRegularly(): void {
    if (this.#teller !== undefined) return;
    const everyMs = Math.min(Math.max(this.#options.leaseMs * TELL_SHARE, SHORTEST_TELL_MS), LONGEST_TELL_MS);
    this.#teller = setInterval(() => this.#tellDeadlines(), everyMs);
    this.#teller.unref();
  }

  #tellDeadlines(): void {
    const runs: { run: number; deadlines: Deadlines }[] = [];
    for (const [run, pending] of this.#pending) {
      const deadlines = this.#deadlinesOf(pending.tenure);
      // A lost lease has no time left; its last deadline stands.
      if (pending.tenure.leftMs <= 0) continue;
      pending.deadlines = deadlines;
      runs.push({ run, deadlines: pending.deadlines });
    }
    if (runs.length > 0) this.#tell({ type: "renewed", runs });
  }

  #deadlinesOf(tenure: Tenure): Deadlines {
    const { leaseMs, delayAfterLossMs = 0 } = this.#options;
    return deadlinesOf(tenure, leaseMs, delayAfterLossMs);
  }

  #tell(message: ToGuard): void {
    // If it cannot be told, it is gone, and that is noticed on its own.
    if (this.#process?.connected === true) this.#process.send(message, () => undefined);
  }
}
