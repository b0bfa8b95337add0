import { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import { openPostgresWakeUrl } from "../../src/engines/postgres/index.ts";
import { started } from "../started.ts";
import { addWakeTests } from "./add-wake-tests.ts";

const server = started(() => startPostgres());

/** Ends every connection but its own, as an operator or a failover does. */
async function endConnections(): Promise<void> {
  const client = new Client({ connectionString: server().url });
  await client.connect();
  await client.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
  );
  await client.end();
}

addWakeTests({
  name: "PostgreSQL",
  open: async () => openPostgresWakeUrl(server().url),
  hints: "A table of counters would cost a write for each wake: more than it saves.",
  interrupt: endConnections,
  age: "There are no budgets.",
});
