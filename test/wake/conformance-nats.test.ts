import { after, before } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { openNatsWakeUrl } from "../../src/engines/nats/wake.ts";
import { addWakeTests } from "./add-wake-tests.ts";

let server: NatsServer | undefined;

before(async () => {
  server = await startNatsServer();
});
after(() => server?.stop());

function running(): NatsServer {
  if (server === undefined) throw new Error("The server was not started.");
  return server;
}

addWakeTests({
  name: "NATS",
  open: async () => openNatsWakeUrl(running().url),
  hints: true,
  async interrupt() {
    await running().kill();
    await running().restart();
  },
  age: "It takes a minute; that the bucket forgets after 60 s stands in its configuration, which another test reads.",
});
