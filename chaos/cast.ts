/** The processes of a run, by place: whoever is killed is followed by another in the same place. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Part } from "./process/part.ts";

/** Sixteen processes that compile the same sources at the same time are slow to begin. */
const COMPILED = join(tmpdir(), "baton-chaos-compiled");

/** One that is stopped when the run ends would stay for ever: nobody would tell it. */
const alive = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of alive) child.kill("SIGKILL");
});

export type Role = "worker" | "submitter";

/** A place, and who has it now. */
export class Member {
  readonly role: Role;
  readonly place: number;
  /** Something happens to it: it is left alone by everything else. */
  isHurt = false;
  readonly #part: Omit<Part, "name" | "generation">;
  readonly #exited: (process: string, trouble: string | undefined) => void;
  #generation = 0;
  #child: ChildProcess | undefined;
  /** What was asked of the process that has the place. */
  #told: "work" | "end" | "die" = "work";

  /** @param exited called when a process ends that was not killed, with what is wrong about that */
  constructor(
    role: Role,
    part: Omit<Part, "name" | "generation">,
    exited: (process: string, trouble: string | undefined) => void,
  ) {
    this.role = role;
    this.place = part.place;
    this.#part = part;
    this.#exited = exited;
  }

  /** The process's own: each one has its history. */
  get name(): string {
    return `${this.role}${this.place + 1}.${this.#generation}`;
  }

  /** Resolves when the process has said that it is there; the store may be away meanwhile. */
  async start(): Promise<void> {
    this.#generation += 1;
    const { seed, folder } = this.#part;
    const part: Part = {
      ...this.#part,
      name: this.name,
      generation: this.#generation,
      seed: seed + this.#generation,
    };
    const log = openSync(join(folder, `${this.name}.log`), "a");
    const script = join(import.meta.dirname, "process", `${this.role}.ts`);
    const env = { ...process.env, NODE_COMPILE_CACHE: COMPILED };
    const child = fork(script, [JSON.stringify(part)], { env, stdio: ["ignore", log, log, "ipc"] });
    closeSync(log);
    this.#child = child;
    this.#told = "work";
    alive.add(child);
    const { name } = this;
    child.once("exit", (code, signal) => {
      alive.delete(child);
      if (this.#told !== "die") this.#exited(name, this.#troubleOf(code, signal));
    });
    child.on("error", () => undefined);
    await Promise.race([once(child, "message"), once(child, "exit")]);
  }

  async kill(): Promise<void> {
    const child = this.#running();
    if (child === undefined) return;
    const exited = once(child, "exit");
    this.#told = "die";
    child.kill("SIGKILL");
    await exited;
  }

  stop(): void {
    this.#child?.kill("SIGSTOP");
  }

  goOn(): void {
    this.#child?.kill("SIGCONT");
  }

  block(forMs: number): void {
    if (this.#child?.connected === true) this.#child.send(forMs);
  }

  /** Resolves when it has ended by itself, or the time is over. */
  async ended(withinMs: number): Promise<void> {
    const child = this.#running();
    if (child === undefined) return;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), withinMs);
    await once(child, "exit", { signal: late.signal }).catch(() => undefined);
    clearTimeout(timer);
  }

  /** Lets it end by itself, for so long. */
  async retire(withinMs: number): Promise<void> {
    const child = this.#running();
    if (child === undefined) return;
    const exited = once(child, "exit");
    this.#told = "end";
    child.kill("SIGCONT");
    if (child.connected) child.disconnect();
    const late = setTimeout(() => child.kill("SIGKILL"), withinMs);
    await exited;
    clearTimeout(late);
  }

  /** A submitter that has a number of calls to make ends when it has made them; everybody else only when told to. */
  #troubleOf(code: number | null, signal: NodeJS.Signals | null): string | undefined {
    if (signal === "SIGKILL" && this.#told === "end") return "did not end when it was told to, and had to be killed";
    if (signal !== null) return `was ended by ${signal}, which nobody had sent`;
    if (code !== 0) return `ended with an error (code ${code ?? "unknown"})`;
    return this.#told === "end" || this.#part.calls !== undefined ? undefined : "ended by itself";
  }

  #running(): ChildProcess | undefined {
    const child = this.#child;
    return child?.exitCode === null && child.signalCode === null ? child : undefined;
  }
}
