/** The SQLite engine with its wake-ups carried by a real NATS server. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { cases, type ConformanceTarget, runCase } from "../../src/conformance/index.ts";
import { openNatsWakeUrl } from "../../src/engines/nats/wake.ts";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import { Wake } from "../../src/wake/wake.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-wake-"));
let server: NatsServer | undefined;

before(async () => {
  server = await startNatsServer();
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Everything that somebody waits for; the rest does not know of wakes. */
const waited = cases.filter(({ guarantee, name }) => guarantee === "G7" || /hold|lost|outcome|told|woken/.test(name));

const target: ConformanceTarget = {
  name: "sqlite over nats",
  open: () =>
    sqliteEngine({ file: join(folder, "store.db"), wake: new Wake(openNatsWakeUrl(server?.url ?? "nats://")) }),
  restart: async () => undefined,
  leaseMs: 1_000,
};

describe("the SQLite engine conforms with wakes over NATS", { concurrency: 8 }, () => {
  for (const one of waited.filter(({ alone }) => !alone)) addTest(one);
});

describe("the SQLite engine conforms with wakes over NATS when it is alone", { concurrency: 1 }, () => {
  for (const one of waited.filter(({ alone }) => alone)) addTest(one);
});

function addTest(one: (typeof cases)[number]): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
