import { after, before, describe, test } from "node:test";
import { cases, type ConformanceTarget, runCase } from "../../src/conformance/index.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";

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

describe("the PostgreSQL engine conforms", { concurrency: 8 }, () => {
  for (const one of cases.filter(({ alone, needsRestart }) => !alone && !needsRestart)) addTest(one);
});

describe("the PostgreSQL engine conforms when it is alone", { concurrency: 1 }, () => {
  for (const one of cases.filter(({ alone, needsRestart }) => alone || needsRestart)) addTest(one);
});

function addTest(one: (typeof cases)[number]): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
