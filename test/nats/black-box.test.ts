/**
 * Many processes on one server, seen from outside. Workers are killed, stopped for longer than their leases, blocked and
 * replaced, and the server itself is killed and started again; then what all of them wrote down is judged. BATON_SEED
 * repeats a run's faults.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Random } from "../simulation/random.ts";
import { violations } from "../sqlite/black-box/checker.ts";
import { Crew, retire } from "../sqlite/black-box/faults.ts";
import { readHistory } from "../sqlite/black-box/history.ts";
import { LEASE_MS, QUEUE } from "../sqlite/black-box/settings.ts";
import { leftInStream, NatsDesk } from "./desk.ts";
import { drained, recordFinals, summary } from "../sqlite/black-box/rounds.ts";
import { startSubmitters } from "./rounds.ts";

const WORKERS = 4;
const SUBMITTERS = 2;
const SUBMIT_EVERY_MS = 30;
const SUFFER_MS = 8_000;
const FAULT_EVERY_MS = 500;
const SERVER_KILLS = 2;
/** Clients notice within a fraction of it. */
const SERVER_AWAY_MS = 300;
const DRAIN_MS = 20_000;
/** What became idle vanishes by a time of life of one second, the least that a server knows. */
const VANISH_MS = LEASE_MS + 1_500;

test("no fault makes two work on a key, loses an item or breaks the order", { timeout: 60_000 }, async (context) => {
  const seed = Number(process.env["BATON_SEED"] ?? randomInt(1_000_000));
  context.diagnostic(`BATON_SEED=${seed}`);
  const random = new Random(seed);
  const { desk, server } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  const crew = new Crew(desk, random.fork());
  await Promise.all(Array.from({ length: WORKERS }, () => crew.hire()));
  const submitters = startSubmitters(desk, SUBMITTERS, random, SUBMIT_EVERY_MS);
  const serverFaults = (async () => {
    for (let kill = 0; kill < SERVER_KILLS; kill += 1) {
      await wait(SUFFER_MS / (SERVER_KILLS + 1));
      await server.kill();
      await wait(SERVER_AWAY_MS);
      await server.restart();
    }
  })();
  await Promise.all([crew.suffer(SUFFER_MS, FAULT_EVERY_MS), serverFaults]);
  await Promise.all(submitters.map(retire));
  const drainedMs = await drained(baton, DRAIN_MS);
  const left = await leftInStream(server.port, `baton-${QUEUE}`, VANISH_MS);
  await crew.dismiss();
  await recordFinals(baton, desk.folder);

  const history = readHistory(desk.folder);
  const found = violations(history);
  const { killed, stopped, blocked, replaced } = crew.counts;
  context.diagnostic(`${killed} killed, ${stopped} stopped, ${blocked} blocked, ${replaced} replaced`);
  context.diagnostic(`${summary(history)}, drained ${drainedMs.toFixed(0)} ms after the last fault`);
  assert.deepEqual(found.slice(0, 20), [], `BATON_SEED=${seed}`);
  assert.equal(left, 0, `${left} messages are left of the queue`);
});
