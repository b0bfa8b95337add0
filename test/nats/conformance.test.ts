import { after, before, describe, test } from "node:test";
import { startNatsServer, type NatsServer } from "../../servers/nats-server.ts";
import { cases, type ConformanceTarget, runCase } from "../../src/conformance/index.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";

let server: NatsServer | undefined;
before(async () => {
  server = await startNatsServer();
});
after(() => server?.stop());

const target: ConformanceTarget = {
  name: "nats",
  open: () => natsEngine({ servers: [`127.0.0.1:${running().port}`] }),
  async restart() {
    await running().kill();
    await running().restart();
  },
  leaseMs: 800,
};

function running(): NatsServer {
  if (server === undefined) throw new Error("The server was not started.");
  return server;
}

describe("the NATS engine conforms", { concurrency: 8 }, () => {
  for (const one of cases.filter(({ alone, needsRestart }) => !alone && !needsRestart)) addTest(one);
});

describe("the NATS engine conforms when it is alone", { concurrency: 1 }, () => {
  for (const one of cases.filter(({ alone, needsRestart }) => alone || needsRestart)) addTest(one);
});

function addTest(one: (typeof cases)[number]): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
