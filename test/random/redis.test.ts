/** The Redis engine answers like the memory engine, whatever it is asked. */
import { test } from "node:test";
import { startRedisServer } from "../../servers/redis-server.ts";
import { redisEngine } from "../../src/engines/redis/index.ts";
import { Seeds } from "../kit/seeds.ts";
import { started } from "../started.ts";
import { playConcurrent } from "./engines/concurrent/run.ts";
import { Gate } from "./engines/gate.ts";
import { playSequential } from "./engines/sequential.ts";
import type { Store } from "./engines/store.ts";

const running = started(() => startRedisServer());

const store: Store = {
  name: "Redis",
  open: () => redisEngine({ url: running().url }),
  isOrdered: true,
  comesWhenAsked: false,
  looseTimes: [],
  unitMs: 500,
  lateMs: 30,
  forgetLateMs: 30,
  allowance: {
    entries: "any",
    forgetsOnTime: true,
    timed: true,
    yieldsBehindNext: true,
    forgetsAtOnce: true,
    bursts: "key",
    ownLevels: true,
    ownHandlesOneIn: 20,
    steps: 80,
    waits: 3,
  },
  atOnce: 60,
  gate: new Gate(4),
  exactLimits: "all",
  countsExactly: true,
  rounds: 12,
  plansAtOnce: 60,
  port: () => Number(new URL(running().url).port),
  openAt: (host) => redisEngine({ url: `redis://${host}` }),
};

test("memory and Redis answer the same", async (context) => {
  await playSequential(context, store, new Seeds({ seeds: 60, longestMs: 6_000 }));
});

test("what several handles ask of Redis at once makes a history of Baton's", async (context) => {
  await playConcurrent(context, store, new Seeds({ seeds: 60, longestMs: 3_000 }));
});
