/** The same suite where every stream has three replicas: leaders are elected, and followers may be behind. */
import { after, before, describe } from "node:test";
import { type NatsCluster, startNatsCluster } from "../../servers/nats-cluster.ts";
import { cases as allCases, type ConformanceTarget } from "../../src/conformance/index.ts";
import type { Engine } from "../../src/engine/port.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";
import { addEngineTest } from "../add-engine-tests.ts";
import { draw } from "../kit/draw.ts";

/** Three servers that start together take up to half a minute to agree on their leaders. */
const CASE_TIMEOUT_MS = 120_000;

const cases = draw.cases("NATS cluster", allCases);
let cluster: NatsCluster | undefined;

const target: ConformanceTarget = {
  name: "nats, three replicas",
  open: () => open("file"),
  restart: () => restartTogether(),
  leaseMs: 1_500,
};

/** Three copies of a hundred streams keep a disk busy for a minute. What is written there matters where all are restarted. */
const inMemory: ConformanceTarget = { ...target, open: () => open("memory") };

const restarting = cases.filter(({ needsRestart }) => needsRestart);

describe("the NATS engine conforms with three replicas", { concurrency: 8 }, () => {
  startFresh();
  for (const one of cases)
    if (!one.alone && !one.needsRestart) addEngineTest(one, inMemory, { timeoutMs: CASE_TIMEOUT_MS });
});

describe("the NATS engine conforms with three replicas when it is alone", { concurrency: 1 }, () => {
  startFresh();
  for (const one of cases)
    if (one.alone && !one.needsRestart) addEngineTest(one, inMemory, { timeoutMs: CASE_TIMEOUT_MS });
});

describe(
  "the NATS engine conforms with three replicas when all are restarted",
  // The lot may have drawn none of them.
  { concurrency: Math.max(1, restarting.length) },
  () => {
    startFresh();
    for (const one of restarting) addEngineTest(one, target, { timeoutMs: CASE_TIMEOUT_MS, ended: leave });
  },
);

/** A restart takes ten seconds and more, so one has to do for all cases that want one: those that are still at it. */
let present = restarting.length;
const arrived: PromiseWithResolvers<void>[] = [];

async function restartTogether(): Promise<void> {
  const mine = Promise.withResolvers<void>();
  arrived.push(mine);
  restartIfAllArrived();
  await mine.promise;
}

function leave(): void {
  present -= 1;
  restartIfAllArrived();
}

function restartIfAllArrived(): void {
  if (arrived.length === 0 || arrived.length < present) return;
  const all = arrived.splice(0);
  restart().then(
    () => all.forEach(({ resolve }) => resolve()),
    (error: unknown) => all.forEach(({ reject }) => reject(error)),
  );
}

async function restart(): Promise<void> {
  const { servers } = running();
  await Promise.all(servers.map((server) => server.kill()));
  await Promise.all(servers.map((server) => server.restart()));
  await running().ready();
}

async function open(storage: "file" | "memory"): Promise<Engine> {
  const servers = running().servers.map(({ port }) => `127.0.0.1:${port}`);
  return await natsEngine({ servers, store: { replicas: 3, storage } });
}

function startFresh(): void {
  before(async () => {
    cluster = await startNatsCluster();
  });
  after(() => cluster?.stop());
}

function running(): NatsCluster {
  if (cluster === undefined) throw new Error("The cluster was not started.");
  return cluster;
}
