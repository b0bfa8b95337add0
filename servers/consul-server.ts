/** A Consul server that belongs to this process: started by it, stopped by it, gone with it. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConsulBinary, findConsul } from "./consul-binary.ts";
import { freePort } from "./free-port.ts";
import { PrivateServer } from "./private-server.ts";

export interface ConsulServerOptions {
  /** More settings for its configuration, as Consul's documentation names them. */
  readonly config?: Readonly<Record<string, unknown>>;
}

/** Its place in a cluster, which must be known before any server of it starts. */
export interface ConsulPlace {
  readonly serfPort: number;
  readonly size: number;
  readonly peers: readonly number[];
}

const START_MS = 30_000;
const LOOK_EVERY_MS = 50;
const PORT_TRIES = 5;

export async function startConsulServer(options: ConsulServerOptions = {}): Promise<ConsulServer> {
  const binary = await findConsul();
  for (let tries = 1; ; tries += 1) {
    const server = new ConsulServer(binary, await somePorts(), options);
    try {
      await server.restart();
      return server;
    } catch (error) {
      const taken = server.log().includes("address already in use");
      await server.stop();
      if (!taken || tries === PORT_TRIES) throw error;
    }
  }
}

/** Resolves when all servers know their leader. */
export async function startConsulCluster(options: ConsulServerOptions = {}, size = 3): Promise<ConsulCluster> {
  const binary = await findConsul();
  const ports = await Promise.all(Array.from({ length: size }, () => somePorts()));
  const peers = ports.map(({ serfPort }) => serfPort);
  const servers = ports.map((one) => new ConsulServer(binary, { ...one, size, peers }, options));
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    await Promise.all(servers.map((server) => server.restart()));
  } catch (error) {
    await stop();
    throw error;
  }
  return { servers, stop, [Symbol.asyncDispose]: stop };
}

export interface ConsulCluster extends AsyncDisposable {
  readonly servers: readonly ConsulServer[];
  stop(): Promise<void>;
}

async function somePorts(): Promise<ConsulPlace & { readonly port: number; readonly rpcPort: number }> {
  const [port, serfPort, rpcPort] = [await freePort(), await freePort(), await freePort()];
  return { port, serfPort, rpcPort, size: 1, peers: [] };
}

export class ConsulServer extends PrivateServer {
  readonly version: string;
  readonly port: number;
  /** `host:port` of its HTTP API. */
  readonly address: string;

  constructor(
    { program, version }: ConsulBinary,
    place: ConsulPlace & { readonly port: number; readonly rpcPort: number },
    { config = {} }: ConsulServerOptions,
  ) {
    const folder = mkdtempSync(join(tmpdir(), "baton-consul-"));
    const configuration = join(folder, "consul.json");
    super({
      name: "Consul server",
      program,
      args: ["agent", "-config-file", configuration],
      logFile: join(folder, "consul.log"),
      folder,
      privateFolder: folder,
    });
    this.version = version;
    this.port = place.port;
    this.address = `127.0.0.1:${place.port}`;
    const settings = {
      server: true,
      bootstrap_expect: place.size,
      node_name: `baton-${place.port}`,
      data_dir: join(folder, "data"),
      bind_addr: "127.0.0.1",
      client_addr: "127.0.0.1",
      retry_join: place.peers.map((port) => `127.0.0.1:${port}`),
      retry_interval: "200ms",
      disable_update_check: true,
      // A test that waits for an election would otherwise wait five times as long.
      performance: { raft_multiplier: 1 },
      ...config,
      ports: {
        http: place.port,
        serf_lan: place.serfPort,
        server: place.rpcPort,
        dns: -1,
        grpc: -1,
        serf_wan: -1,
        ...(isRecord(config["ports"]) ? config["ports"] : {}),
      },
    };
    writeFileSync(configuration, JSON.stringify(settings));
  }

  /** Whether it is up, has a leader, and that leader takes writes. */
  async ready(): Promise<void> {
    const end = performance.now() + START_MS;
    for (;;) {
      if (await hasLeader(this.address)) return;
      if (!this.isRunning) throw new Error(`The Consul server ended:\n${this.log()}`);
      if (performance.now() > end) {
        throw new Error(`The Consul server has no leader after ${START_MS} ms:\n${this.log()}`);
      }
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** Whether it is the one that decides, for tests that take it away. */
  async isLeader(): Promise<boolean> {
    const response = await fetch(`http://${this.address}/v1/agent/self`);
    const self = (await response.json()) as { readonly Stats: { readonly consul: { readonly leader: string } } };
    return self.Stats.consul.leader === "true";
  }
}

/** A read that the leader confirms with a majority. One that is refused for want of a token was answered, too. */
async function hasLeader(address: string): Promise<boolean> {
  try {
    const response = await fetch(`http://${address}/v1/kv/baton-is-it-there?consistent`, {
      signal: AbortSignal.timeout(2_000),
    });
    await response.arrayBuffer();
    return response.status === 404 || response.status === 200 || response.status === 403;
  } catch {
    return false;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
