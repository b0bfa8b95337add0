/** The SQLite engine answers like the memory engine, whatever it is asked. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { sqliteEngine } from "../../src/engines/sqlite/index.ts";
import { Seeds } from "../kit/seeds.ts";
import { playConcurrent } from "./engines/concurrent/run.ts";
import { Gate } from "./engines/gate.ts";
import { playSequential } from "./engines/sequential.ts";
import type { Store } from "./engines/store.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-random-"));
after(() => rmSync(folder, { recursive: true, force: true }));

let apart = 0;

const store: Store = {
  name: "SQLite",
  apart: () => {
    const file = join(folder, `apart${(apart += 1)}.db`);
    return () => sqliteEngine({ file, synchronous: "off" });
  },
  open: () => sqliteEngine({ file: join(folder, "store.db"), synchronous: "off" }),
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
    bursts: "any",
    ownLevels: true,
    ownHandlesOneIn: 8,
    steps: 80,
    waits: 3,
  },
  atOnce: 60,
  gate: new Gate(3),
  exactLimits: "all",
  countsExactly: true,
  rounds: 12,
  plansAtOnce: 60,
};

test("memory and SQLite answer the same", async (context) => {
  await playSequential(context, store, new Seeds({ seeds: 60, longestMs: 6_000 }));
});

test("what several handles ask of SQLite at once makes a history of Baton's", async (context) => {
  await playConcurrent(context, store, new Seeds({ seeds: 60, longestMs: 3_000 }));
});
