/** The memory engine by the clock of the system answers like itself by a clock that stands still; and is asked by several at once. */
import { test } from "node:test";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import { Seeds } from "../kit/seeds.ts";
import { playConcurrent } from "./engines/concurrent/run.ts";
import { Gate } from "./engines/gate.ts";
import { playSequential } from "./engines/sequential.ts";
import type { Store } from "./engines/store.ts";

const memory = new MemoryStore();

const store: Store = {
  name: "memory by the clock",
  open: async () => memory.connect(),
  isOrdered: true,
  comesWhenAsked: false,
  looseTimes: [],
  unitMs: 400,
  lateMs: 30,
  forgetLateMs: 30,
  allowance: {
    entries: "any",
    forgetsOnTime: true,
    timed: true,
    yieldsBehindNext: true,
    forgetsAtOnce: true,
    bursts: "any",
    ownLevels: true,
    ownHandlesOneIn: 5,
    steps: 80,
    waits: 3,
  },
  atOnce: 60,
  gate: new Gate(8),
  exactLimits: "all",
  countsExactly: true,
  rounds: 12,
  plansAtOnce: 60,
};

test("the memory engine answers the same by any clock", async (context) => {
  await playSequential(context, store, new Seeds({ seeds: 60, longestMs: 4_000 }));
});

test("what several handles ask of the memory engine at once makes a history of Baton's", async (context) => {
  await playConcurrent(context, store, new Seeds({ seeds: 60, longestMs: 3_000 }));
});
