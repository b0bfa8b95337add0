/** What the tests of the NATS engine share: servers, a folder for histories, and processes that use both. */
import type { TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type NatsCluster, startNatsCluster } from "../../servers/nats-cluster.ts";
import { ask } from "../../servers/nats-probe.ts";
import { type NatsServer, type NatsServerOptions, startNatsServer } from "../../servers/nats-server.ts";
import { until } from "../kit/until.ts";
import { ServerDesk } from "../server-desk.ts";

export { Child, now, refusal } from "../server-desk.ts";

const LOOK_MS = 50;

export class NatsDesk extends ServerDesk {
  static async withServer(
    context: TestContext,
    options: NatsServerOptions = {},
  ): Promise<{ readonly desk: NatsDesk; readonly server: NatsServer }> {
    const server = await startNatsServer(options);
    const desk = new NatsDesk(context, server.url);
    // After the desk has closed its connections: what was asked for first is done first.
    context.after(() => server.stop());
    return { desk, server };
  }

  static async withCluster(context: TestContext): Promise<{ readonly desk: NatsDesk; readonly cluster: NatsCluster }> {
    const cluster = await startNatsCluster();
    const desk = new NatsDesk(context, `${cluster.url}?replicas=3`);
    context.after(() => cluster.stop());
    return { desk, cluster };
  }
}

export interface StreamAnswer {
  readonly error?: { readonly description: string };
  readonly config?: Readonly<Record<string, unknown>>;
  readonly state?: { readonly messages: number; readonly last_seq: number };
  readonly cluster?: { readonly leader?: string };
}

export async function streamInfo(port: number, stream: string): Promise<StreamAnswer> {
  return (await ask(port, `$JS.API.STREAM.INFO.${stream}`)) as StreamAnswer;
}

export async function streamNames(port: number): Promise<readonly string[]> {
  const { streams } = (await ask(port, "$JS.API.STREAM.NAMES")) as { readonly streams?: readonly string[] | null };
  return streams ?? [];
}

/** Waits until a claim, or a worker that has nothing to do, has its pulls at the server: what comes then meets one that waits. */
export async function untilPulled(port: number, stream = "baton-cars"): Promise<void> {
  await until(async () => {
    const { consumers = [] } = (await ask(port, `$JS.API.CONSUMER.LIST.${stream}`)) as {
      readonly consumers?: readonly { readonly name: string; readonly num_waiting: number }[];
    };
    const ready = consumers.filter(({ name }) => name.startsWith("ready-"));
    return ready.length > 0 && ready.every(({ num_waiting }) => num_waiting > 0);
  }, "pulls that stand at the server");
}

/** The messages of the queue's stream, as soon as there are none, or how many are left when the time is over. */
export async function leftInStream(port: number, stream: string, withinMs: number): Promise<number> {
  const end = performance.now() + withinMs;
  for (;;) {
    const messages = (await streamInfo(port, stream)).state?.messages ?? Number.NaN;
    if (messages === 0 || performance.now() > end) return messages;
    await wait(LOOK_MS);
  }
}
