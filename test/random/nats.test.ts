/** The NATS engine answers like the memory engine, whatever it is asked. */
import { test } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";
import { Seeds } from "../kit/seeds.ts";
import { started } from "../started.ts";
import { playConcurrent } from "./engines/concurrent/run.ts";
import { Gate } from "./engines/gate.ts";
import { playSequential } from "./engines/sequential.ts";
import type { Store } from "./engines/store.ts";

const running = started(() => startNatsServer());

const store: Store = {
  name: "NATS",
  open: () => natsEngine({ servers: [`127.0.0.1:${running().port}`] }),
  isOrdered: false,
  comesWhenAsked: true,
  looseTimes: ["deadline", "since"],
  unitMs: 1_600,
  lateMs: 500,
  forgetLateMs: 4_000,
  allowance: {
    entries: "key",
    forgetsOnTime: false,
    timed: true,
    yieldsBehindNext: false,
    forgetsAtOnce: false,
    bursts: "key",
    ownLevels: false,
    ownHandlesOneIn: 20,
    steps: 50,
    waits: 2,
  },
  atOnce: 12,
  gate: new Gate(4),
  exactLimits: "none",
  countsExactly: false,
  rounds: 10,
  plansAtOnce: 12,
  port: () => running().port,
  openAt: (host) => natsEngine({ servers: [host] }),
};

test("memory and NATS answer the same", async (context) => {
  await playSequential(context, store, new Seeds({ seeds: 12, longestMs: 6_000 }));
});

test("what several handles ask of NATS at once makes a history of Baton's", async (context) => {
  await playConcurrent(context, store, new Seeds({ seeds: 12, longestMs: 3_000 }));
});
