/** Baton queues as sources of the relay: on a real NATS server. */
import { after } from "node:test";
import { startNatsServer } from "../../../servers/nats-server.ts";
import { connect } from "../../../src/index.ts";
import { addSourceTests } from "./add-source-tests.ts";
import { batonTarget } from "./baton-target.ts";

const server = await startNatsServer();
after(() => server.stop());
addSourceTests(
  "a queue on NATS",
  batonTarget("nats", () => connect(server.url)),
);
