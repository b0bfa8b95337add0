/** Closing while a NATS server stands still. */
import { startNatsServer } from "../../servers/nats-server.ts";
import { addClosingTests } from "./stage.ts";

addClosingTests(startNatsServer);
