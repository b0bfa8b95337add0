/** What the tests of the SQLite engine share: a folder with a store, and processes of their own that use it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Baton, type BatonOptions, connect } from "../../src/index.ts";

const CHILDREN = join(import.meta.dirname, "children");

export class Desk {
  readonly folder: string;
  readonly file: string;
  readonly #open: Baton[] = [];
  readonly #children: Child[] = [];

  constructor(context: TestContext) {
    this.folder = mkdtempSync(join(tmpdir(), "baton-sqlite-"));
    this.file = join(this.folder, "store.db");
    context.after(async () => {
      await Promise.all(this.#children.map((child) => child.kill()));
      await Promise.all(this.#open.map((baton) => baton.close({ grace: 0 })));
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  get url(): string {
    return `sqlite:${this.file}`;
  }

  async connect(options: BatonOptions = {}): Promise<Baton> {
    const baton = await connect(this.url, options);
    this.#open.push(baton);
    return baton;
  }

  start(script: string, ...args: readonly string[]): Child {
    const child = new Child(fork(join(CHILDREN, `${script}.ts`), args));
    this.#children.push(child);
    return child;
  }
}

/** A process of its own that tells what it does in messages. */
export class Child {
  readonly process: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly #messages: unknown[] = [];
  #wake: () => void = () => undefined;

  constructor(process: ChildProcess) {
    this.process = process;
    this.exited = once(process, "exit");
    process.on("message", (message) => {
      this.#messages.push(message);
      this.#wake();
    });
    process.once("exit", () => this.#wake());
  }

  get alive(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null;
  }

  /** The next message, in order. */
  async next<T>(): Promise<T> {
    while (this.#messages.length === 0) {
      if (!this.alive) throw new Error("The process ended without a message.");
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return this.#messages.shift() as T;
  }

  send(message: string): void {
    this.process.send(message);
  }

  async kill(): Promise<void> {
    if (!this.alive) return;
    this.process.kill("SIGKILL");
    await this.exited;
  }
}

/** By a clock that all processes of this machine share. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export interface Refusal {
  readonly code: unknown;
  readonly message: string;
}

/** Why the call was refused, which it must be. */
export async function refusal(call: Promise<unknown>): Promise<Refusal> {
  try {
    await call;
  } catch (error) {
    if (error instanceof Error) return { code: Reflect.get(error, "code"), message: error.message };
  }
  throw new Error("The call was not refused.");
}
