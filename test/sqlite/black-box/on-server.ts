/**
 * Many processes on one server, seen from outside. Workers are killed, stopped for longer than their leases, blocked and
 * replaced, and the server itself is killed and started again; then what all of them wrote down is judged. BATON_SEED
 * repeats a run's faults.
 */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { PrivateServer } from "../../../servers/private-server.ts";
import type { ServerDesk } from "../../server-desk.ts";
import { Random } from "../../kit/random.ts";
import type { Child } from "../desk.ts";
import { violations } from "./checker.ts";
import { Crew, retire } from "./faults.ts";
import { readHistory } from "./history.ts";
import { drained, recordFinals, summary } from "./rounds.ts";

const WORKERS = 4;
const SUBMITTERS = 2;
const SUBMIT_EVERY_MS = 30;
const SUFFER_MS = 8_000;
const FAULT_EVERY_MS = 500;
const SERVER_KILLS = 2;
/** Clients notice within a fraction of it. */
const SERVER_AWAY_MS = 300;
const DRAIN_MS = 30_000;
const MOST_SHOWN = 20;

/** @param look at the store when everything is done, while the workers are still there */
export async function suffer(
  context: TestContext,
  desk: ServerDesk,
  server: PrivateServer,
  look: () => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const seed = Number(process.env["BATON_SEED"] ?? randomInt(1_000_000));
  context.diagnostic(`BATON_SEED=${seed}`);
  const random = new Random(seed);
  const baton = await desk.connect();
  const crew = new Crew(desk, random.fork());
  await Promise.all(Array.from({ length: WORKERS }, () => crew.hire()));
  const submitters = startSubmitters(desk, SUBMITTERS, random, SUBMIT_EVERY_MS);
  // Before anything goes wrong: whoever begins to connect while the server is away is told so, and ends.
  await Promise.all(submitters.map((submitter) => submitter.next()));
  await Promise.all([crew.suffer(SUFFER_MS, FAULT_EVERY_MS), killNowAndThen(server)]);
  await Promise.all(submitters.map(retire));
  const drainedMs = await drained(baton, DRAIN_MS);
  await look();
  await crew.dismiss();
  await recordFinals(baton, desk.folder);

  const history = readHistory(desk.folder);
  const { killed, stopped, blocked, replaced } = crew.counts;
  context.diagnostic(`${killed} killed, ${stopped} stopped, ${blocked} blocked, ${replaced} replaced`);
  context.diagnostic(`${summary(history)}, drained ${drainedMs.toFixed(0)} ms after the last fault`);
  assert.deepEqual(violations(history).slice(0, MOST_SHOWN), [], `BATON_SEED=${seed}`);
}

/** Submitters for a store that can be away. */
export function startSubmitters(desk: ServerDesk, count: number, random: Random, pauseMs: number): readonly Child[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = String(random.between(1, 1e9));
    const name = `submitter${index + 1}`;
    return desk.start("../../nats/children/submitter", desk.url, desk.folder, name, seed, String(pauseMs));
  });
}

async function killNowAndThen(server: PrivateServer): Promise<void> {
  for (let kill = 0; kill < SERVER_KILLS; kill += 1) {
    await wait(SUFFER_MS / (SERVER_KILLS + 1));
    await server.kill();
    await wait(SERVER_AWAY_MS);
    await server.restart();
  }
}
