import { after, before } from "node:test";
import type { ConformanceTarget } from "../../src/conformance/index.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { addEngineTests } from "../add-engine-tests.ts";

let server: PostgresServer | undefined;
before(async () => {
  server = await startPostgres();
});
after(() => server?.stop());

const target: ConformanceTarget = {
  name: "postgres",
  open: () => openPostgresUrl(running().url),
  async restart() {
    await running().kill();
    await running().restart();
  },
};

function running(): PostgresServer {
  if (server === undefined) throw new Error("The server was not started.");
  return server;
}

addEngineTests("the PostgreSQL engine", target);
