import { after, before, describe } from "node:test";
import { ownConnections } from "../../src/engines/postgres/connections.ts";
import { PostgresEngine } from "../../src/engines/postgres/engine.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { testRegister } from "./register-contract.ts";

let server: PostgresServer | undefined;
before(async () => {
  server = await startPostgres();
});
after(() => server?.stop());

describe("the register of PostgreSQL", () => {
  testRegister({
    async open(context) {
      const engine = await PostgresEngine.open(ownConnections(server?.url ?? ""), {});
      context.after(() => engine.close());
      return engine.register;
    },
    async restart() {
      await server?.kill();
      await server?.restart();
    },
    outlived: true,
    lateMs: 1_000,
  });
});
