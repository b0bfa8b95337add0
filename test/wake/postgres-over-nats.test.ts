/** The PostgreSQL engine with its wake-ups carried by a real NATS server. */
import { after, before } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";
import { openNatsWakeUrl } from "../../src/engines/nats/wake.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { Wake } from "../../src/wake/wake.ts";
import { addWaitedTests } from "./add-waited-tests.ts";

let nats: NatsServer | undefined;
let postgres: PostgresServer | undefined;

before(async () => {
  [nats, postgres] = await Promise.all([startNatsServer(), startPostgres()]);
});
after(async () => {
  await Promise.all([nats?.stop(), postgres?.stop()]);
});

addWaitedTests("PostgreSQL with wakes over NATS", {
  name: "the PostgreSQL engine with wakes over NATS",
  open: () => openPostgresUrl(postgres?.url ?? "", new Wake(openNatsWakeUrl(nats?.url ?? "nats://"))),
  restart: "Restarts are the business of the engine's own suite.",
  leaseMs: 1_000,
});
