import { startNatsServer } from "../../servers/nats-server.ts";
import { cases, type ConformanceTarget } from "../../src/conformance/index.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { openConnection, wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { draw } from "../kit/draw.ts";
import { started } from "../started.ts";

/** One that syncs what it acknowledges: there, writes go together sooner or later. Here they do so from the first on. */
const running = started(() => startNatsServer({ sync: "always" }));

const target: ConformanceTarget = {
  name: "nats-together",
  async open() {
    const wire = wireOf(await openConnection({ servers: [running().url] }), true);
    return new NatsEngine({ wire, clock: systemClock, random: Math.random, putTogether: true });
  },
  async restart() {
    await running().kill();
    await running().restart();
  },
  leaseMs: 800,
};

addEngineTests("the NATS engine, whose writes go together,", target, draw.cases("NATS together", cases));
