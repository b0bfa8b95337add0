/** A worker, its guard and some commands, all real; and until when each command may live. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Order } from "./orders.ts";
import { childrenOf, exists, groupIsAlive } from "./processes.ts";

/** How a command takes SIGTERM, and whether it ends by itself. */
export type Manner = "polite" | "stubborn" | "brief" | "leaves-a-child";

export type Step =
  | { readonly step: "start"; readonly run: number; readonly manner: Manner; readonly killAfterMs: number }
  | { readonly step: "lose" | "lapse" | "renew"; readonly run: number }
  | { readonly step: "kill-all" | "freeze" | "thaw" | "kill-worker" | "kill-guard" }
  | { readonly step: "pass"; readonly ms: number };

export interface Plan {
  readonly seed: number;
  readonly leaseMs: number;
  readonly script: readonly Step[];
}

interface Command {
  readonly run: number;
  readonly manner: Manner;
  readonly killAfterMs: number;
  pid: number | undefined;
  /** Of its own accord, or because something gave a reason. Infinity: it must live. */
  dueBy: number;
  /** Not killed before. */
  notBefore: number;
  lapsesAt: number;
  diedAt: number | undefined;
  end: string | undefined;
}

const WORKER = join(import.meta.dirname, "worker.ts");
/** What the documents give beside the lease: SIGKILL takes a moment, a guard that is halted is waited for. */
const GONE_MS = 400;
/** For everything that has to be told from one process to another. */
const TELL_MS = 500;
const LOOK_MS = 25;
const LEFTOVERS_MS = 1_000;
/** For so long a machine that was late is taken to be late. */
const LATENESS_MS = 3_000;
const LONGEST_ORPHAN_MS = 5_000;
/** For what still runs when the guard is let go. */
const LAST_COMMANDS_MS = 5_000;
const START_MS = 20_000;

export class Scene {
  readonly #plan: Plan;
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-guard-"));
  readonly #commands = new Map<number, Command>();
  readonly #worker: ChildProcess;
  #isFrozen = false;
  #isDead = false;
  /** How late this process is: the machine is busy, and the others are as late. */
  #lateMs = 0;
  /** And how late it was at each look of the last few seconds. */
  #lateness: { readonly at: number; readonly lateMs: number }[] = [];
  #lookedAt = performance.now();
  #said: string | undefined;
  #onObeyed: (() => void) | undefined;

  constructor(plan: Plan) {
    this.#plan = plan;
    const words = [String(plan.leaseMs), String(marginOf(plan.leaseMs))];
    this.#worker = fork(WORKER, words, { stdio: ["ignore", "ignore", "ignore", "ipc"] });
    this.#worker.on("error", () => undefined);
    this.#worker.on("message", (message: unknown) => this.#hear(message));
  }

  async play(): Promise<string | undefined> {
    try {
      await once(this.#worker, "message", { signal: AbortSignal.timeout(START_MS) });
      for (const step of this.#plan.script) {
        const problem = await this.#take(step);
        if (problem !== undefined) return problem;
      }
      return await this.#finish();
    } finally {
      this.#cleanUp();
    }
  }

  async #take(step: Step): Promise<string | undefined> {
    if (step.step === "pass") return await this.#watch(step.ms);
    if (this.#isDead) return undefined;
    const now = performance.now();
    const { leaseMs } = this.#plan;
    const marginMs = marginOf(leaseMs);
    switch (step.step) {
      case "start":
        return this.#isFrozen ? undefined : await this.#start(step);
      case "lose": {
        const command = this.#living(step.run);
        if (command === undefined || this.#isFrozen) return undefined;
        await this.#tell({ order: "lose", run: step.run });
        const killMs = Math.min(command.killAfterMs, leaseMs - marginMs + slackless(marginMs));
        this.#reason(command, now, killMs);
        return undefined;
      }
      case "lapse":
      case "renew": {
        const command = this.#living(step.run);
        if (command === undefined || this.#isFrozen || command.dueBy < Infinity !== (step.step === "renew"))
          return undefined;
        // Too near to its end to know who is first.
        if (step.step === "renew" && (command.lapsesAt === Infinity || command.lapsesAt - now < 2 * TELL_MS))
          return undefined;
        await this.#tell({ order: step.step, run: step.run });
        command.lapsesAt = step.step === "lapse" ? now + leaseMs - marginMs : Infinity;
        command.dueBy =
          step.step === "lapse" ? performance.now() + leaseMs - marginMs + slackless(marginMs) + GONE_MS : Infinity;
        command.notBefore = step.step === "lapse" ? command.lapsesAt : Infinity;
        return undefined;
      }
      case "kill-all":
        if (this.#isFrozen) return undefined;
        await this.#tell({ order: "kill-all" });
        for (const command of this.#all()) this.#reason(command, now, 0);
        return undefined;
      case "freeze":
        this.#isFrozen = true;
        this.#worker.kill("SIGSTOP");
        for (const command of this.#all()) {
          command.dueBy = Math.min(command.dueBy, now + leaseMs - marginMs + slackless(marginMs) + GONE_MS);
          // What was told last may be a twelfth of the lease old.
          command.notBefore = Math.min(command.notBefore, now + leaseMs * (11 / 12) - marginMs - TELL_MS);
        }
        return undefined;
      case "thaw":
        if (!this.#isFrozen) return undefined;
        // Not in the middle: then it would be a race who is first.
        await this.#watch(leaseMs + GONE_MS);
        this.#isFrozen = false;
        this.#worker.kill("SIGCONT");
        return undefined;
      case "kill-worker":
        this.#isDead = true;
        this.#worker.kill("SIGKILL");
        for (const command of this.#all()) this.#reason(command, now, Math.min(LONGEST_ORPHAN_MS, leaseMs / 4));
        return undefined;
      case "kill-guard":
        // A guard that is killed while its worker is halted ends nothing, and that is said.
        if (this.#isFrozen) return undefined;
        for (const pid of childrenOf(this.#worker.pid ?? 0)) process.kill(pid, "SIGKILL");
        for (const command of this.#all()) this.#reason(command, now, 0);
        // The next one is started with the next command.
        return await this.#watch(TELL_MS);
    }
  }

  async #start({ run, manner, killAfterMs }: Extract<Step, { readonly step: "start" }>): Promise<string | undefined> {
    if (this.#commands.has(run)) return undefined;
    const command: Command = {
      run,
      manner,
      killAfterMs,
      pid: undefined,
      dueBy: Infinity,
      notBefore: Infinity,
      lapsesAt: Infinity,
      diedAt: undefined,
      end: undefined,
    };
    this.#commands.set(run, command);
    await this.#tell({ order: "start", run, script: this.#scriptOf(run, manner), killAfterMs });
    const giveUpAt = performance.now() + START_MS;
    // Its trap is set before it says who it is.
    while (command.pid === undefined && command.end === undefined) {
      if (performance.now() > giveUpAt) return `Command ${run} did not start.`;
      const problem = await this.#watch(LOOK_MS);
      if (problem !== undefined) return problem;
      const file = join(this.#folder, `pid${run}`);
      const text = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
      if (text !== "") command.pid = Number(text);
    }
    // Its guard had gone, and that was not known yet.
    if (command.pid === undefined) command.diedAt = performance.now();
    if (manner === "brief" || manner === "leaves-a-child") {
      command.dueBy = performance.now() + LEFTOVERS_MS + TELL_MS + GONE_MS;
      command.notBefore = 0;
    }
    return undefined;
  }

  #scriptOf(run: number, manner: Manner): string {
    const pid = join(this.#folder, `pid${run}`);
    const say = `echo $$ > ${pid}.new; mv ${pid}.new ${pid}`;
    switch (manner) {
      case "polite":
        return `trap 'exit 7' TERM; ${say}; sleep 300 & wait`;
      case "stubborn":
        return `trap ':' TERM; ${say}; while :; do sleep 300 & wait; done`;
      case "brief":
        return `${say}; sleep 0.1; exit 3`;
      case "leaves-a-child":
        return `sleep 300 >/dev/null 2>&1 & ${say}; exit 3`;
    }
  }

  /** There is a reason, which came between the moment given and now: it is asked to end, and killed after a while. */
  #reason(command: Command, now: number, killMs: number, leastMs: number = killMs): void {
    const isStubborn = command.manner === "stubborn";
    command.dueBy = Math.min(command.dueBy, performance.now() + (isStubborn ? killMs : 0) + GONE_MS);
    command.notBefore = Math.min(command.notBefore, now + (isStubborn ? leastMs : 0));
  }

  /** Time passes, and everything that should live does, and everything that should be gone is. */
  async #watch(ms: number): Promise<string | undefined> {
    const until = performance.now() + ms;
    this.#lookedAt = performance.now();
    do {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const now = performance.now();
      const lateMs = now - this.#lookedAt - LOOK_MS;
      this.#lateMs = Math.max(this.#lateMs, lateMs);
      this.#lateness.push({ at: now, lateMs });
      const problem = this.#look(now);
      this.#lookedAt = performance.now();
      if (problem !== undefined) return problem;
    } while (performance.now() < until);
    return undefined;
  }

  #lateNow(now: number): number {
    this.#lateness = this.#lateness.filter(({ at }) => now - at < LATENESS_MS);
    return this.#lateness.reduce((most, { lateMs }) => Math.max(most, lateMs), 0);
  }

  #look(now: number): string | undefined {
    for (const command of this.#all()) {
      const { run, manner, pid, dueBy, notBefore } = command;
      if (pid === undefined) continue;
      if (groupIsAlive(pid)) {
        const lateMs = now - dueBy;
        if (lateMs > TELL_MS + 3 * this.#lateNow(now))
          return `Command ${run} (${manner}) lives ${Math.round(lateMs)} ms longer than it may.`;
        continue;
      }
      command.diedAt = now;
      const earlyMs = notBefore - now;
      // On a machine that stands still leases run out by themselves.
      const isSure = this.#lateMs * 3 < this.#plan.leaseMs - marginOf(this.#plan.leaseMs);
      if (isSure && earlyMs > 100 + 2 * this.#lateMs)
        return dueBy === Infinity
          ? `Command ${run} (${manner}) was ended without a reason.`
          : `Command ${run} (${manner}) ended ${Math.round(earlyMs)} ms too soon.`;
    }
    return undefined;
  }

  /** The worker lets its guard go: nothing is left, and every run has had its answer. */
  async #finish(): Promise<string | undefined> {
    if (this.#isFrozen) {
      const problem = await this.#take({ step: "thaw" });
      if (problem !== undefined) return problem;
    }
    const guards = this.#isDead ? [] : childrenOf(this.#worker.pid ?? 0);
    const now = performance.now();
    if (!this.#isDead) {
      await this.#tell({ order: "leave" });
      // A guard that is let go hears of no renewal any more: a lease that is shorter ends first.
      const leastMs = Math.min(LAST_COMMANDS_MS, this.#plan.leaseMs - marginOf(this.#plan.leaseMs));
      for (const command of this.#all()) this.#reason(command, now, LAST_COMMANDS_MS, leastMs);
    }
    const giveUpAt = now + 3 * START_MS;
    while ([...this.#all()].length > 0 || (!this.#isDead && this.#said !== "left")) {
      const problem = await this.#watch(LOOK_MS);
      if (problem !== undefined) return problem;
      if (performance.now() > giveUpAt) return "The worker could not leave.";
    }
    for (const pid of guards) if (exists(pid)) return "The guard lives on after its worker has let it go.";
    return this.#isDead ? undefined : this.#judgeEnds();
  }

  #judgeEnds(): string | undefined {
    for (const { run, manner, pid, end } of this.#commands.values()) {
      if (pid === undefined) continue;
      if (end === undefined) return `How command ${run} (${manner}) ended was not told.`;
      if ((manner === "brief" || manner === "leaves-a-child") && end !== "exited 3" && !end.startsWith("killed"))
        return `Command ${run} (${manner}) ended as ${end}.`;
      if (manner === "stubborn" && !end.startsWith("killed")) return `Command ${run} (${manner}) ended as ${end}.`;
    }
    return undefined;
  }

  *#all(): Generator<Command> {
    for (const command of this.#commands.values()) if (command.diedAt === undefined) yield command;
  }

  #living(run: number): Command | undefined {
    const command = this.#commands.get(run);
    return command?.diedAt === undefined && command?.pid !== undefined ? command : undefined;
  }

  /** Resolves when the worker has obeyed: what it is told and has not read goes with it when it is killed. */
  async #tell(order: Order): Promise<void> {
    if (!this.#worker.connected) return;
    const obeyed = Promise.withResolvers<void>();
    this.#onObeyed = obeyed.resolve;
    this.#worker.send(order);
    await obeyed.promise;
  }

  #hear(message: unknown): void {
    if (typeof message !== "object" || message === null) return;
    if ("obeyed" in message) this.#onObeyed?.();
    if ("left" in message) this.#said = "left";
    if (!("run" in message) || !("end" in message)) return;
    const command = this.#commands.get(Number(message.run));
    if (command !== undefined) command.end = describeEnd(message.end);
  }

  #cleanUp(): void {
    this.#worker.kill("SIGKILL");
    for (const { pid } of this.#commands.values()) {
      try {
        if (pid !== undefined && groupIsAlive(pid)) process.kill(-pid, "SIGKILL");
      } catch {
        // It has just gone.
      }
    }
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function describeEnd(end: unknown): string {
  if (typeof end !== "object" || end === null || !("type" in end)) return "nothing";
  const more = "code" in end ? end.code : "signal" in end ? end.signal : "";
  return `${String(end.type)} ${String(more)}`;
}

/** As the documents say: a tenth of the lease, half a second at least, a quarter of it at most. */
function marginOf(leaseMs: number): number {
  return Math.min(Math.max(leaseMs / 10, 500), leaseMs / 4);
}

/** The part of the margin that a command has to end in. */
function slackless(marginMs: number): number {
  return marginMs - Math.min(marginMs / 4, 500);
}
