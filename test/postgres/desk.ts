/** What the tests of the PostgreSQL engine share: a server, a folder for histories, and processes that use both. */
import type { TestContext } from "node:test";
import { type PostgresServer, type PostgresServerOptions, startPostgres } from "../../servers/postgres.ts";
import { ServerDesk } from "../server-desk.ts";

export { now, refusal } from "../server-desk.ts";

export class PostgresDesk extends ServerDesk {
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
}
