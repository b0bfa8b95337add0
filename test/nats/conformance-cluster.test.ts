/** The same suite where every stream has three replicas: leaders are elected, and followers may be behind. */
import { after, before, describe, test } from "node:test";
import { type NatsCluster, startNatsCluster } from "../../servers/nats-cluster.ts";
import { cases, type ConformanceTarget, runCase } from "../../src/conformance/index.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";

type Case = (typeof cases)[number];

/** Three servers that start together take up to half a minute to agree on their leaders. */
const CASE_TIMEOUT_MS = 120_000;

let cluster: NatsCluster | undefined;

const target: ConformanceTarget = {
  name: "nats, three replicas",
  open: () => natsEngine({ servers: running().servers.map(({ port }) => `127.0.0.1:${port}`), store: { replicas: 3 } }),
  restart: () => restartTogether(),
  leaseMs: 1_500,
};

const restarting = cases.filter(({ needsRestart }) => needsRestart);

describe("the NATS engine conforms with three replicas", { concurrency: 8 }, () => {
  startFresh();
  for (const one of cases.filter(({ alone, needsRestart }) => !alone && !needsRestart)) addTest(one);
});

describe("the NATS engine conforms with three replicas when it is alone", { concurrency: 1 }, () => {
  startFresh();
  for (const one of cases.filter(({ alone, needsRestart }) => alone && !needsRestart)) addTest(one);
});

describe(
  "the NATS engine conforms with three replicas when all are restarted",
  { concurrency: restarting.length },
  () => {
    startFresh();
    for (const one of restarting) addTest(one, () => leave());
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

function addTest(one: Case, ended: () => void = () => undefined): void {
  test(`${one.guarantee}: ${one.name}`, async (context) => {
    const result = await runCase(one, target, CASE_TIMEOUT_MS).finally(ended);
    if (result.status === "skipped") context.skip(result.reason);
    if (result.status === "failed") throw result.error;
  });
}
