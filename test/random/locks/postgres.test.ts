import { ownConnections } from "../../../src/engines/postgres/connections.ts";
import { PostgresEngine } from "../../../src/engines/postgres/engine.ts";
import { startPostgres } from "../../../servers/postgres.ts";
import { Seeds } from "../../kit/seeds.ts";
import { addStoreTests, type RunningStore } from "./add-store-tests.ts";

const start = async (): Promise<RunningStore> => {
  const server = await startPostgres();
  return {
    connect: () => PostgresEngine.open(ownConnections(server.url), {}),
    stop: () => server.stop(),
  };
};

addStoreTests("locks in PostgreSQL", start, () => new Seeds({ seeds: 40, longestMs: 4_000 }));
