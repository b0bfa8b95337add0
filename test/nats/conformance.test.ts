import { startNatsServer } from "../../servers/nats-server.ts";
import type { ConformanceTarget } from "../../src/conformance/index.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { started } from "../started.ts";

const running = started(() => startNatsServer());

const target: ConformanceTarget = {
  name: "nats",
  open: () => natsEngine({ servers: [`127.0.0.1:${running().port}`] }),
  async restart() {
    await running().kill();
    await running().restart();
  },
  leaseMs: 800,
};

addEngineTests("the NATS engine", target);
