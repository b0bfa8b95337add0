/**
 * Many processes on one file, seen from outside. Workers are killed, stopped for longer than their leases, blocked
 * and replaced, by chance; then what all of them wrote down is judged. BATON_SEED repeats a run's faults.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { BLACK_BOXES, draw } from "../kit/draw.ts";
import { Random } from "../kit/random.ts";
import { violations } from "./black-box/checker.ts";
import { Crew, retire } from "./black-box/faults.ts";
import { readHistory } from "./black-box/history.ts";
import { drained, recordFinals, summary } from "./black-box/rounds.ts";
import { stopOne } from "./black-box/stop-one.ts";
import { Desk } from "./desk.ts";

const WORKERS = 4;
const SUBMITTERS = 2;
const SUFFER_MS = 8_000;
const FAULT_EVERY_MS = 500;
const DRAIN_MS = 30_000;

const skip = draw.leavesOut(BLACK_BOXES, "SQLite");

test(
  "no fault makes two work on a key, loses an item or breaks the order",
  { timeout: 120_000, skip },
  async (context) => {
    const seed = Number(process.env["BATON_SEED"] ?? randomInt(1_000_000));
    context.diagnostic(`BATON_SEED=${seed}`);
    const random = new Random(seed);
    const desk = new Desk(context);
    const baton = await desk.connect();
    const crew = new Crew(desk, random.fork());
    await Promise.all(Array.from({ length: WORKERS }, () => crew.hire()));
    const submitters = Array.from({ length: SUBMITTERS }, (_, index) => {
      const name = `submitter${index + 1}`;
      return desk.start("../black-box/submitter", desk.url, desk.folder, name, String(random.between(1, 1e9)));
    });
    await crew.suffer(SUFFER_MS, FAULT_EVERY_MS);
    await Promise.all(submitters.map(retire));
    const drainedMs = await drained(baton, DRAIN_MS);
    await crew.dismiss();
    await recordFinals(baton, desk.folder);

    const history = readHistory(desk.folder);
    const found = violations(history);
    const { killed, stopped, blocked, replaced } = crew.counts;
    context.diagnostic(`${killed} killed, ${stopped} stopped, ${blocked} blocked, ${replaced} replaced`);
    context.diagnostic(`${summary(history)}, drained ${drainedMs.toFixed(0)} ms after the last fault`);
    assert.deepEqual(found.slice(0, 20), [], `BATON_SEED=${seed}`);
    assert.ok(drainedMs < DRAIN_MS, `It took ${drainedMs.toFixed(0)} ms until all was done.`);
  },
);

test(
  "a worker that was stopped for two leases learns of the loss, is refused, and the other's work is untouched",
  { timeout: 60_000 },
  async (context) => {
    await stopOne(context, new Desk(context));
  },
);
