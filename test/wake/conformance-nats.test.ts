import { startNatsServer } from "../../servers/nats-server.ts";
import { openNatsWakeUrl } from "../../src/engines/nats/wake.ts";
import { addWakeTests } from "./add-wake-tests.ts";
import { started } from "../started.ts";

const running = started(() => startNatsServer());

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
