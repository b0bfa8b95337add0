/** Baton queues as sources of the relay: on a real NATS server. */
import { after } from "node:test";
import { startNatsServer } from "../../../servers/nats-server.ts";
import { connect } from "../../../src/index.ts";
import { addSourceTests } from "./add-source-tests.ts";
import { batonTarget } from "./baton-target.ts";

/** A lease that is kept over a network must outlive what a busy machine makes of a second. */
const HOLD_MS = 2_500;

const server = await startNatsServer();
after(() => server.stop());
addSourceTests(
  "a queue on NATS",
  batonTarget("nats", () => connect(server.url), HOLD_MS),
);
