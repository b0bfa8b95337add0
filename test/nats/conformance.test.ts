import { after, before } from "node:test";
import { startNatsServer, type NatsServer } from "../../servers/nats-server.ts";
import type { ConformanceTarget } from "../../src/conformance/index.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";
import { addEngineTests } from "../add-engine-tests.ts";

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

addEngineTests("the NATS engine", target);
