/**
 * Whoever leads the queue's stream is killed. How long a cluster is without a leader is its own affair, four to nine seconds as a rule; from the
 * moment on at which a plain client gets answers again, work starts.
 */
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import type { NatsCluster } from "../../servers/nats-cluster.ts";
import { serverInfo } from "../../servers/nats-probe.ts";
import type { NatsServer } from "../../servers/nats-server.ts";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { NatsDesk, now, streamInfo } from "./desk.ts";

const KILLS = 3;
const STREAM = "baton-cars";
const SUBMIT_EVERY_MS = 25;
const ANSWER_MS = 150;
/** It takes 10 to 200; the rest is for a machine that is busy. */
const SOON_MS = 1_000;
/** What was under way when the leader died may still come to its end. */
const UNDER_WAY_MS = 300;

test("after a leader's death work starts as soon as the server answers", { timeout: 180_000 }, async (context) => {
  const { desk, cluster } = await NatsDesk.withCluster(context);
  const [producer, consumer] = [await desk.connect(), await desk.connect()];
  const cars = producer.queue("cars", { levels: ["only"] });
  await cars.levels();
  const startedAt: number[] = [];
  const worker = consumer.queue("cars").work(() => void startedAt.push(now()), { concurrency: 4 });
  const over = new AbortController();
  context.after(() => over.abort());
  const submitting = submitAlways(async (item) => void (await cars.submit(`car${item}`, null)), over.signal);
  await until(() => startedAt.length > 0, "work");

  for (let kill = 0; kill < KILLS; kill += 1) {
    using lateness = new Lateness();
    const killed = await leader(cluster);
    const alive = cluster.servers.filter((server) => server !== killed);
    const raw = await connect({ servers: alive.map(({ port }) => `127.0.0.1:${port}`) });
    context.after(() => raw.close());
    const killedAt = now();
    await killed.kill();
    const [first, servedAt] = await Promise.all([
      until(() => Promise.resolve(startedAt.find((at) => at > killedAt + UNDER_WAY_MS)), "a start"),
      serves(raw),
    ]);
    const late = first - servedAt;
    context.diagnostic(
      `without a leader for ${(servedAt - killedAt).toFixed(0)} ms; the first item started ${late.toFixed(0)} ms after that`,
    );
    lateness.assertWithin(late, SOON_MS, "the first start after the cluster answered again");
    await killed.restart();
    await cluster.ready();
  }

  over.abort();
  await submitting;
  await worker.stop();
});

/** When a plain client can publish to the stream and pull from its consumer again, and the stream beside it has a leader. */
async function serves(raw: NatsConnection): Promise<number> {
  const one = async (answers: () => Promise<boolean>): Promise<void> => {
    while (!(await answers())) await wait(10);
  };
  await Promise.all([
    // A leader alone answers, that there is no such message.
    one(
      async () =>
        (await asked(raw, `$JS.API.STREAM.MSG.GET.${STREAM}`, '{"last_by_subj":"baton.q.cars.n.none"}')) !== undefined,
    ),
    one(
      async () =>
        (await asked(raw, "$JS.API.STREAM.MSG.GET.baton", '{"last_by_subj":"baton.c.dead.none"}')) !== undefined,
    ),
    one(async () => {
      const answer = await asked(raw, `$JS.API.CONSUMER.MSG.NEXT.${STREAM}.ready-0`, '{"batch":1,"no_wait":true}');
      if (answer?.reply?.startsWith("$JS.ACK") === true) raw.publish(answer.reply, "-NAK");
      return answer !== undefined && answer.headers?.code !== 503;
    }),
  ]);
  return now();
}

function asked(raw: NatsConnection, subject: string, body: string): Promise<Msg | undefined> {
  return new Promise((resolve) => {
    const inbox = `_INBOX.probe.${crypto.randomUUID()}`;
    const hearing = raw.subscribe(inbox, { max: 1, callback: (_, message) => end(message) });
    const timer = setTimeout(() => end(undefined), ANSWER_MS);
    const end = (message: Msg | undefined): void => {
      clearTimeout(timer);
      hearing.unsubscribe();
      resolve(message?.data.length === 0 && message.headers?.code === 503 ? undefined : message);
    };
    raw.publish(subject, body, { reply: inbox });
  });
}

async function submitAlways(submit: (item: number) => Promise<void>, over: AbortSignal): Promise<void> {
  const under: Promise<unknown>[] = [];
  for (let item = 0; !over.aborted; item += 1) {
    // What is submitted while there is no leader is accepted when there is one, or its outcome is not known.
    under.push(submit(item).catch(() => undefined));
    await wait(SUBMIT_EVERY_MS);
  }
  await Promise.all(under);
}

async function leader({ servers }: NatsCluster): Promise<NatsServer> {
  return await until(async () => {
    for (const server of servers) {
      const info = await streamInfo(server.port, STREAM).catch(() => undefined);
      const names = await Promise.all(servers.map(async ({ port }) => (await serverInfo(port)).server_name));
      const found = servers[names.indexOf(info?.cluster?.leader ?? "")];
      if (found !== undefined) return found;
    }
    return undefined;
  }, "a leader of the queue's stream");
}
