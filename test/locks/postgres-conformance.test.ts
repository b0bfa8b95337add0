import { after, before } from "node:test";
import { ownConnections } from "../../src/engines/postgres/connections.ts";
import { PostgresEngine } from "../../src/engines/postgres/engine.ts";
import type { Register } from "../../src/locks/register.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { addLockTests } from "./add-lock-tests.ts";
import { registerTarget } from "./register-target.ts";

let server: PostgresServer | undefined;
before(async () => {
  server = await startPostgres();
});
after(() => server?.stop());

/** A handle of its own for each, as every process has one: it ends with its register. */
async function openRegister(): Promise<Register> {
  const engine = await PostgresEngine.open(ownConnections(server?.url ?? ""), {});
  const { register } = engine;
  return {
    read: (name) => register.read(name),
    write: (request) => register.write(request),
    watch: (name, changed) => register.watch(name, changed),
    listen: (name, told) => register.listen(name, told),
    list: (prefix) => register.list(prefix),
    close: () => engine.close(),
  };
}

async function restart(): Promise<void> {
  await server?.kill("SIGINT");
  await server?.restart();
}

addLockTests("locks in PostgreSQL", registerTarget({ name: "postgres", openRegister, restart, leaseMs: 1_000 }), {
  concurrency: 8,
});
