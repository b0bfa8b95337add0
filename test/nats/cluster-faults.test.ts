/** Three servers, three replicas: whoever leads the queue's stream is killed, again and again, while workers work. */
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { NatsCluster } from "../../servers/nats-cluster.ts";
import { serverInfo } from "../../servers/nats-probe.ts";
import type { NatsServer } from "../../servers/nats-server.ts";
import { Random } from "../kit/random.ts";
import { violations } from "../sqlite/black-box/checker.ts";
import { retire } from "../sqlite/black-box/faults.ts";
import { readHistory } from "../sqlite/black-box/history.ts";
import { LEASE_MS, QUEUE } from "../sqlite/black-box/settings.ts";
import { until } from "../kit/until.ts";
import { leftInStream, NatsDesk, streamInfo } from "./desk.ts";
import { drained, recordFinals, summary } from "../sqlite/black-box/rounds.ts";
import { startSubmitters } from "../sqlite/black-box/on-server.ts";

const WORKERS = 3;
const SUBMITTERS = 2;
const SUBMIT_EVERY_MS = 20;
const KILLS = 3;
const BETWEEN_MS = 1_000;
const DRAIN_MS = 25_000;
const STREAM = `baton-${QUEUE}`;
const VANISH_MS = LEASE_MS + 1_500;

test("a leader that is killed again and again takes nothing along", { timeout: 120_000 }, async (context) => {
  const seed = Number(process.env["BATON_SEED"] ?? randomInt(1_000_000));
  context.diagnostic(`BATON_SEED=${seed}`);
  const random = new Random(seed);
  const { desk, cluster } = await NatsDesk.withCluster(context);
  const baton = await desk.connect();
  await baton.queue(QUEUE).levels();
  const workers = Array.from({ length: WORKERS }, (_, index) =>
    desk.start("../black-box/worker", desk.url, desk.folder, `worker${index + 1}`),
  );
  await Promise.all(workers.map((worker) => worker.next()));
  const submitters = startSubmitters(desk, SUBMITTERS, random, SUBMIT_EVERY_MS);
  for (let kill = 0; kill < KILLS; kill += 1) {
    await wait(BETWEEN_MS);
    const killed = await leader(cluster);
    await killed.kill();
    const from = performance.now();
    await leader(cluster);
    context.diagnostic(`a new leader after ${(performance.now() - from).toFixed(0)} ms`);
    await killed.restart();
  }
  await wait(BETWEEN_MS);
  await Promise.all(submitters.map(retire));
  const drainedMs = await drained(baton, DRAIN_MS);
  const { port } = await leader(cluster);
  const left = await leftInStream(port, STREAM, VANISH_MS);
  await Promise.all(workers.map(retire));
  await recordFinals(baton, desk.folder);

  const history = readHistory(desk.folder);
  context.diagnostic(`${summary(history)}, drained in ${drainedMs.toFixed(0)} ms`);
  assert.deepEqual(violations(history).slice(0, 20), [], `BATON_SEED=${seed}`);
  assert.equal(left, 0, `${left} messages are left of the queue`);
});

/** The server that leads the queue's stream, as soon as there is one. */
async function leader({ servers }: NatsCluster): Promise<NatsServer> {
  return await until(async () => {
    const alive = servers.filter(({ isRunning }) => isRunning);
    const names = await Promise.all(alive.map(async ({ port }) => (await serverInfo(port)).server_name));
    for (const { port } of alive) {
      const info = await streamInfo(port, STREAM).catch(() => undefined);
      const found = alive[names.indexOf(info?.cluster?.leader ?? "")];
      if (found !== undefined) return found;
    }
    return undefined;
  }, "a leader of the queue's stream");
}
