/** The SQLite engine with its wake-ups carried by a real NATS server. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { openNatsWakeUrl } from "../../src/engines/nats/wake.ts";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import { Wake } from "../../src/wake/wake.ts";
import { addWaitedTests } from "./add-waited-tests.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-wake-"));
let server: NatsServer | undefined;

before(async () => {
  server = await startNatsServer();
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

addWaitedTests("SQLite with wakes over NATS", {
  name: "the SQLite engine with wakes over NATS",
  open: () =>
    sqliteEngine({ file: join(folder, "store.db"), wake: new Wake(openNatsWakeUrl(server?.url ?? "nats://")) }),
  restart: async () => undefined,
  leaseMs: 1_000,
});
