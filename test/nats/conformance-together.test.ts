import { startNatsServer } from "../../servers/nats-server.ts";
import { cases, type ConformanceTarget } from "../../src/conformance/index.ts";
import { openConnection, wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { draw } from "../kit/draw.ts";
import { started } from "../started.ts";

/** One that syncs what it acknowledges. Here writes go together however few wait. */
const running = started(() => startNatsServer({ sync: "always" }));

const target: ConformanceTarget = {
  name: "nats-together",
  async open() {
    const wire = wireOf(await openConnection({ servers: [running().url] }), true);
    return new NatsEngine({ wire, random: Math.random, options: { sync: "always" }, fewestTogether: 1 });
  },
  async restart() {
    await running().kill();
    await running().restart();
  },
  leaseMs: 800,
};

addEngineTests("the NATS engine, whose writes go together,", target, draw.cases("NATS together", cases));
