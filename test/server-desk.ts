import type { TestContext } from "node:test";
import { type Child, Desk } from "./sqlite/desk.ts";

export { Child, now, refusal } from "./sqlite/desk.ts";

const SQLITE_WORKER = "../black-box/worker";
/** Servers can be away when a process begins; a file cannot. */
const PATIENT_WORKER = "../../nats/children/worker";

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
