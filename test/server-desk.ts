import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type Child, Desk } from "./sqlite/desk.ts";

export { Child, now, refusal } from "./sqlite/desk.ts";

const SQLITE_WORKER = "../black-box/worker";
/** Servers can be away when a process begins; a file cannot. */
const PATIENT_WORKER = "../../nats/children/worker";
const LOOK_MS = 50;

/** The same folder and processes as those of SQLite, in front of a server. */
export class ServerDesk extends Desk {
  readonly #url: string;

  constructor(context: TestContext, url: string) {
    super(context);
    this.#url = url;
  }

  override get url(): string {
    return this.#url;
  }

  override start(script: string, ...args: readonly string[]): Child {
    return super.start(script === SQLITE_WORKER ? PATIENT_WORKER : script, ...args);
  }
}

/** Waits for what must come, and says what it waited for if it does not. */
export async function until<T>(what: string, withinMs: number, look: () => Promise<T | false | undefined>): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`Within ${withinMs} ms there was not: ${what}`);
    await wait(LOOK_MS);
  }
}
