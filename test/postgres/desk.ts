/** What the tests of the PostgreSQL engine share: a server, a folder for histories, and processes that use both. */
import type { TestContext } from "node:test";
import { type PostgresServer, type PostgresServerOptions, startPostgres } from "../../servers/postgres.ts";
import { type Child, Desk } from "../sqlite/desk.ts";

export { now, refusal } from "../sqlite/desk.ts";
export { until } from "../nats/desk.ts";

const SQLITE_WORKER = "../black-box/worker";
/** Servers can be away when a process begins; a file cannot. */
const PATIENT_WORKER = "../../nats/children/worker";

/** The same folder and processes as those of SQLite, in front of another store. */
export class PostgresDesk extends Desk {
  readonly #url: string;

  private constructor(context: TestContext, url: string) {
    super(context);
    this.#url = url;
  }

  static async withServer(
    context: TestContext,
    options: PostgresServerOptions = {},
  ): Promise<{ readonly desk: PostgresDesk; readonly server: PostgresServer }> {
    const server = await startPostgres(options);
    const desk = new PostgresDesk(context, server.url);
    // After the desk has closed its connections: what was asked for first is done first.
    context.after(() => server.stop());
    return { desk, server };
  }

  /** In a database of its own, on a server that others use too. */
  static async withDatabase(context: TestContext, server: PostgresServer): Promise<PostgresDesk> {
    return new PostgresDesk(context, await server.newDatabase());
  }

  override get url(): string {
    return this.#url;
  }

  override start(script: string, ...args: readonly string[]): Child {
    return super.start(script === SQLITE_WORKER ? PATIENT_WORKER : script, ...args);
  }
}
