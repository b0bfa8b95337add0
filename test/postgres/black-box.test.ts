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
import { drained, fact, recordFinals, summary } from "../sqlite/black-box/rounds.ts";
import { LEASE_MS, QUEUE } from "../sqlite/black-box/settings.ts";
import { PostgresDesk } from "./desk.ts";

const WORKERS = 4;
const SUBMITTERS = 2;
const SUBMIT_EVERY_MS = 30;
const SUFFER_MS = 8_000;
const FAULT_EVERY_MS = 500;
const SERVER_KILLS = 2;
const SERVER_AWAY_MS = 300;
const DRAIN_MS = 30_000;

test("no fault makes two work on a key, loses an item or breaks the order", { timeout: 120_000 }, async (context) => {
  const seed = Number(process.env["BATON_SEED"] ?? randomInt(1_000_000));
  context.diagnostic(`BATON_SEED=${seed}`);
  const random = new Random(seed);
  const { desk, server } = await PostgresDesk.withServer(context);
  const baton = await desk.connect();
  const crew = new Crew(desk, random.fork());
  await Promise.all(Array.from({ length: WORKERS }, () => crew.hire()));
  const submitters = Array.from({ length: SUBMITTERS }, (_, index) => {
    const name = `submitter${index + 1}`;
    const drawn = String(random.between(1, 1e9));
    return desk.start("../../nats/children/submitter", desk.url, desk.folder, name, drawn, String(SUBMIT_EVERY_MS));
  });
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
  await crew.dismiss();
  await recordFinals(baton, desk.folder);

  const history = readHistory(desk.folder);
  const found = violations(history);
  const { killed, stopped, blocked, replaced } = crew.counts;
  context.diagnostic(`${killed} killed, ${stopped} stopped, ${blocked} blocked, ${replaced} replaced`);
  context.diagnostic(`${summary(history)}, drained ${drainedMs.toFixed(0)} ms after the last fault`);
  assert.deepEqual(found.slice(0, 20), [], `BATON_SEED=${seed}`);
  const left = await server.query("SELECT count(*)::integer AS n FROM baton.key");
  assert.deepEqual(left.rows, [{ n: 0 }], "rows of keys that have nothing");
});

test("a worker that was stopped for longer than its lease is refused", { timeout: 60_000 }, async (context) => {
  const { desk } = await PostgresDesk.withServer(context);
  const baton = await desk.connect();
  const cars = baton.queue(QUEUE);
  const first = desk.start("../black-box/worker", desk.url, desk.folder, "first");
  await first.next();
  // Longer than the stop: the first is at it when it is stopped, and the second when the first goes on.
  await cars.submit("car1", { workMs: 4 * LEASE_MS }, { id: "long" });
  await fact(desk, (one) => one.type === "began");
  first.process.kill("SIGSTOP");
  const second = desk.start("../black-box/worker", desk.url, desk.folder, "second");
  const taken = await fact(desk, (one) => one.type === "began" && one.worker === "second");
  first.process.kill("SIGCONT");
  const refused = await fact(desk, (one) => one.type === "refused");
  assert.ok("fence" in taken && "fence" in refused && refused.fence < taken.fence);
  await drained(baton, DRAIN_MS);
  await Promise.all([first, second].map(retire));
  await recordFinals(baton, desk.folder, [{ item: "long" }]);
  const history = readHistory(desk.folder);
  assert.deepEqual(violations(history), []);
  assert.equal((await cars.item("long"))?.attempt, 2);
});
