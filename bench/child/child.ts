import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { cacheFolder } from "../stores/place.ts";
import type { Reply, TaskInput, TaskName, TaskResult } from "./tasks.ts";

/** No task takes longer, its box and the slowest peer's start and stop included. */
const LONGEST_TASK_MS = 120_000;
const ENOUGH_OF_STDERR = 2_000;

const living = new Set<ChildProcess>();

/** A process of its own with one subject opened. */
export class Child {
  readonly #process: ChildProcess;
  #errors = "";

  constructor(subject: string, location: string, exclusive: boolean) {
    const script = join(import.meta.dirname, "main.ts");
    this.#process = fork(script, [subject, location, exclusive ? "exclusive" : ""], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      serialization: "advanced",
      // A run starts hundreds of processes: what one has compiled, the next need not. Saves a third of a second each.
      env: { ...process.env, NODE_COMPILE_CACHE: join(cacheFolder, "compiled") },
    });
    living.add(this.#process);
    this.#process.on("exit", () => living.delete(this.#process));
    this.#process.stderr?.on("data", (data: Buffer) => {
      this.#errors = (this.#errors + data.toString()).slice(-ENOUGH_OF_STDERR);
    });
  }

  async call<Name extends TaskName>(task: Name, input?: TaskInput<Name>): Promise<TaskResult<Name>> {
    const reply = await this.#ask({ task, input });
    if (!reply.ok) throw new Error(`${task}: ${reply.message}`);
    // Name and result come from the same type, and the child runs the same code.
    return reply.result as TaskResult<Name>;
  }

  /** Nothing is lost by force: the store is dropped after it. */
  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill("SIGKILL");
    await exited;
  }

  #ask(call: { readonly task: TaskName; readonly input: unknown }): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    const timer = setTimeout(() => reject(new Error(`${call.task} took longer than 2 minutes`)), LONGEST_TASK_MS);
    const gone = (): void => reject(new Error(`${call.task}: the process ended. ${this.#errors}`));
    const answered = (reply: unknown): void => resolve(reply as Reply);
    this.#process.once("exit", gone);
    this.#process.once("message", answered);
    this.#process.send(call, (error) => {
      if (error !== null) reject(error);
    });
    return promise.finally(() => {
      clearTimeout(timer);
      this.#process.off("exit", gone);
      this.#process.off("message", answered);
    });
  }
}

export function killChildren(): void {
  for (const child of living) child.kill("SIGKILL");
}
