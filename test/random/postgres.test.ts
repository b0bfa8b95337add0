/** The PostgreSQL engine answers like the memory engine, whatever it is asked. */
import { test } from "node:test";
import { startPostgres } from "../../servers/postgres.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { Seeds } from "../kit/seeds.ts";
import { started } from "../started.ts";
import { playConcurrent } from "./engines/concurrent/run.ts";
import { Gate } from "./engines/gate.ts";
import { playSequential } from "./engines/sequential.ts";
import type { Store } from "./engines/store.ts";

const running = started(() => startPostgres());

const store: Store = {
  name: "PostgreSQL",
  open: () => openPostgresUrl(running().url),
  isOrdered: false,
  comesWhenAsked: false,
  looseTimes: [],
  unitMs: 1_200,
  lateMs: 30,
  forgetLateMs: 30,
  allowance: {
    entries: "any",
    forgetsOnTime: true,
    timed: true,
    yieldsBehindNext: false,
    forgetsAtOnce: true,
    bursts: "key",
    ownLevels: true,
    ownHandlesOneIn: 20,
    steps: 80,
    waits: 2,
  },
  atOnce: 60,
  gate: new Gate(4),
  exactLimits: "key",
  countsExactly: true,
  rounds: 12,
  plansAtOnce: 60,
  port: () => Number(new URL(running().url).port),
  openAt: (host) => openPostgresUrl(atHost(running().url, host)),
};

test("memory and PostgreSQL answer the same", async (context) => {
  await playSequential(context, store, new Seeds({ seeds: 40, longestMs: 5_000 }));
});

test("what several handles ask of PostgreSQL at once makes a history of Baton's", async (context) => {
  await playConcurrent(context, store, new Seeds({ seeds: 40, longestMs: 3_000 }));
});

function atHost(url: string, host: string): string {
  const other = new URL(url);
  other.host = host;
  return other.href;
}
