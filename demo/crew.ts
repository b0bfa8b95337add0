import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { type HistoryRecord, now } from "./history.ts";

const WORKER = join(import.meta.dirname, "worker.ts");

/** The worker processes. */
export class Crew {
  readonly #processes = new Map<string, ChildProcess>();
  readonly #record: (record: HistoryRecord) => void;

  constructor(record: (record: HistoryRecord) => void) {
    this.#record = record;
  }

  /** Starts them all, and waits until each is at work. */
  async start(store: string, folder: string, names: readonly string[]): Promise<void> {
    const started = names.map(async (name) => {
      const child = fork(WORKER, [store, folder, name]);
      this.#processes.set(name, child);
      const [message] = (await Promise.race([once(child, "message"), once(child, "exit")])) as unknown[];
      if (message !== "ready") throw new Error(`${name} did not start.`);
    });
    await Promise.all(started);
  }

  /** As if somebody had pulled the plug: the process gets no chance to say goodbye. */
  async kill(name: string): Promise<void> {
    const child = this.#processes.get(name);
    if (child === undefined) throw new Error(`There is no ${name}.`);
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    this.#processes.delete(name);
    this.#record({ type: "kill", at: now(), worker: name });
  }

  /** Lets those that are left finish and go home. */
  async dismiss(): Promise<void> {
    const leaving = [...this.#processes.values()].filter(isAlive).map((child) => {
      const gone = once(child, "exit");
      if (child.connected) child.disconnect();
      return gone;
    });
    await Promise.all(leaving);
    this.#processes.clear();
  }

  /** In a hurry, at whatever point of the story. */
  async abandon(): Promise<void> {
    for (const child of this.#processes.values()) child.kill("SIGKILL");
    await this.dismiss();
  }
}

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}
