/** Starts processes full of idle workers, gives them a little work, and counts how often the store was asked for it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../../src/index.ts";
import { until } from "../../kit/until.ts";
import { type FromHerd, type HerdTask, QUEUE, type ToHerd } from "./messages.ts";
import { openStore } from "./open-store.ts";

export interface HerdPlan {
  /** The URL of a PostgreSQL database. Undefined: a SQLite file of its own. */
  readonly store?: string;
  /** Undefined: the store's own wakes. */
  readonly carrier?: string;
  readonly processes: number;
  readonly workers: number;
  readonly items: number;
  readonly hints: boolean;
  /** `together`: all in one call. Otherwise each when the one before it is done. */
  readonly submits: "together" | "one by one";
}

export interface HerdReport {
  /** How often the store was asked for work, by all processes, from the submit until everybody was idle again. */
  readonly looks: number;
  /** Items that were done, and how often anything was. */
  readonly done: number;
  readonly runs: number;
  /** From the submit until the last item was done. */
  readonly ms: number;
}

/** Nobody looks any more when the count stands still for so long. */
const QUIET_MS = 400;
const PATIENCE_MS = 60_000;

export async function driveHerd({ processes, items, submits, ...plan }: HerdPlan): Promise<HerdReport> {
  const folder = mkdtempSync(join(tmpdir(), "baton-herd-"));
  const task: HerdTask = { ...plan, store: plan.store ?? join(folder, "store.db") };
  const { engine } = await openStore(task);
  const baton = await connect(engine);
  const queue = baton.queue(QUEUE);
  await queue.status();
  const herds = await Promise.all(Array.from({ length: processes }, () => Herd.start(task)));
  try {
    const idle = await quiet(herds);
    const began = performance.now();
    const keys = Array.from({ length: items }, (_, number) => `key-${number}`);
    if (submits === "together") await queue.submitMany(keys.map((key) => ({ key, payload: null })));
    for (const [index, key] of submits === "together" ? [] : keys.entries()) {
      await queue.submit(key, null);
      await until(() => doneIds(herds).length > index, "the item to be done", PATIENCE_MS);
    }
    await until(() => new Set(doneIds(herds)).size >= items, "all items to be done", PATIENCE_MS);
    const ms = performance.now() - began;
    const looks = (await quiet(herds)) - idle;
    const done = doneIds(herds);
    return { looks, done: new Set(done).size, runs: done.length, ms };
  } finally {
    await Promise.all(herds.map((herd) => herd.stop()));
    await baton.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Herd {
  readonly done: string[] = [];
  readonly #child: ChildProcess;
  readonly #answers: ((looks: number) => void)[] = [];
  readonly #ready = Promise.withResolvers<void>();

  private constructor(task: HerdTask) {
    this.#child = fork(join(import.meta.dirname, "child.ts"), [JSON.stringify(task)], { execPath: process.execPath });
    this.#child.on("message", (message: FromHerd) => {
      if (message.type === "done") this.done.push(message.id);
      else if (message.type === "looks") this.#answers.shift()?.(message.looks);
      else this.#ready.resolve();
    });
    this.#child.once("exit", (code) => this.#ready.reject(new Error(`A herd ended with ${String(code)}.`)));
  }

  static async start(task: HerdTask): Promise<Herd> {
    const herd = new Herd(task);
    await herd.#ready.promise;
    return herd;
  }

  async looks(): Promise<number> {
    return await new Promise((resolve) => {
      this.#answers.push(resolve);
      this.#tell("looks");
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#tell("stop");
    const giveUp = setTimeout(() => this.#child.kill("SIGKILL"), PATIENCE_MS);
    await exited;
    clearTimeout(giveUp);
  }

  #tell(message: ToHerd): void {
    this.#child.send(message);
  }
}

function doneIds(herds: readonly Herd[]): readonly string[] {
  return herds.flatMap(({ done }) => done);
}

/** How often all have looked, when nobody does any more. */
async function quiet(herds: readonly Herd[]): Promise<number> {
  for (let before = -1; ;) {
    const counts = await Promise.all(herds.map((herd) => herd.looks()));
    const now = counts.reduce((sum, count) => sum + count, 0);
    if (now === before) return now;
    before = now;
    await sleep(QUIET_MS);
  }
}
