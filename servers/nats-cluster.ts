import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./free-port.ts";
import { ask } from "./nats-probe.ts";
import { type NatsServer, type NatsServerOptions, PortTakenError, startNatsServer } from "./nats-server.ts";

export interface NatsClusterOptions extends Pick<NatsServerOptions, "sync" | "config"> {
  readonly size?: number;
  /** Whether servers tell clients of one another. Without it, clients stay with the addresses that they were given. Default true. */
  readonly advertise?: boolean;
}

export interface NatsCluster extends AsyncDisposable {
  /** Of all servers. */
  readonly url: string;
  readonly servers: readonly NatsServer[];
  /** Resolves when all servers are up, have a leader and are level with it. */
  ready(): Promise<void>;
  stop(): Promise<void>;
}

const READY_MS = 30_000;
const LOOK_EVERY_MS = 50;
const PORT_TRIES = 5;
const PROBE = "BATON_PROBE";

interface StreamAnswer {
  readonly error?: { readonly description: string };
  readonly cluster?: { readonly leader?: string; readonly replicas?: readonly { readonly current: boolean }[] };
}

export async function startNatsCluster(options: NatsClusterOptions = {}): Promise<NatsCluster> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start(options);
    } catch (error) {
      if (!(error instanceof PortTakenError) || tries === PORT_TRIES) throw error;
    }
  }
}

async function start({ size = 3, sync, config, advertise = true }: NatsClusterOptions): Promise<NatsCluster> {
  // Known beforehand, for every server is told of all the others.
  const ports = await Promise.all(Array.from({ length: size }, () => freePort()));
  const routes = ports.map((port) => `"nats://127.0.0.1:${port}"`).join(", ");
  const starts = ports.map((port) => {
    const listen = `name: "baton", listen: "127.0.0.1:${port}", routes: [${routes}], no_advertise: ${!advertise}`;
    const cluster = `cluster { ${listen} }\n`;
    return startNatsServer({ config: cluster + (config ?? ""), ...(sync === undefined ? {} : { sync }) });
  });
  // All of them, before anything is said of one: those that did start have to be stopped.
  const started = await Promise.allSettled(starts);
  const servers = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  const ready = (): Promise<void> => level(servers);
  try {
    // Throws the reason of the first that did not start.
    await Promise.all(starts);
    await ready();
  } catch (error) {
    await stop();
    throw error;
  }
  const url = `nats://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  return { url, servers, ready, stop, [Symbol.asyncDispose]: stop };
}

/** A stream that has a replica everywhere, and every server knows of it: the leader's log has reached all of them. */
async function level(servers: readonly NatsServer[]): Promise<void> {
  const end = performance.now() + READY_MS;
  for (;;) {
    try {
      await tryProbe(servers);
      return;
    } catch (error) {
      if (performance.now() > end) {
        const logs = servers.map((server) => `${server.url}:\n${server.log()}`).join("\n");
        throw new Error(`The NATS cluster is not ready after ${READY_MS} ms:\n${logs}`, { cause: error });
      }
    }
    await sleep(LOOK_EVERY_MS);
  }
}

async function tryProbe(servers: readonly NatsServer[]): Promise<void> {
  const [first] = servers;
  if (first === undefined) return;
  const stream = { name: PROBE, subjects: [PROBE], num_replicas: servers.length, storage: "memory" };
  await askStream(first, "CREATE", stream);
  for (const server of servers) {
    const { cluster } = await askStream(server, "INFO", {});
    const replicas = cluster?.replicas ?? [];
    const areLevel = replicas.length === servers.length - 1 && replicas.every(({ current }) => current);
    if (cluster?.leader === undefined || !areLevel) throw new Error("Not every server is level with the leader.");
  }
  await askStream(first, "DELETE", {});
}

async function askStream(
  server: NatsServer,
  what: "CREATE" | "INFO" | "DELETE",
  payload: object,
): Promise<StreamAnswer> {
  const answer = (await ask(server.port, `$JS.API.STREAM.${what}.${PROBE}`, payload)) as StreamAnswer;
  if (answer.error !== undefined) throw new Error(answer.error.description);
  return answer;
}
