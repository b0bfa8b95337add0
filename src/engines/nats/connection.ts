/** A real connection as a wire, and the look at every server of the cluster before anything is written. */
import { readFileSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { Authenticator, Msg, NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node";
import { systemClock } from "../../domain/clock.ts";
import { BatonError, InvalidInput } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import { loadNats } from "./client-library.ts";
import { checkNatsOptions, type NatsOptions } from "./options.ts";
import { Outbox } from "./outbox.ts";
import { isNewEnough, NoJetStream, ServerTooOld } from "./versions.ts";
import type { Delivery, Denied, Subscription, Wire } from "./wire.ts";

const CONNECT_MS = 5_000;
const PROBE_MS = 2_000;
const EMPTY = new Uint8Array(0);
const ACK_PREFIX = "$JS.ACK.";

/** @param pingMs how often a silent server is asked for a sign of life; the client's default is two minutes */
export async function openConnection(options: NatsOptions, pingMs?: number): Promise<NatsConnection> {
  checkNatsOptions(options);
  const library = await loadNats();
  const settings: NodeConnectionOptions = {
    servers: [...options.servers],
    name: "baton",
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    timeout: CONNECT_MS,
    // Credentials are rotated: one refusal is not the last word.
    ignoreAuthErrorAbort: true,
    ...(options.user === undefined ? {} : { user: options.user, pass: options.password ?? "" }),
    ...(options.token === undefined ? {} : { token: options.token }),
    ...(options.tls === undefined ? {} : { tls: tlsOf(options.tls) }),
    ...authenticatorOf(options, library),
    ...(pingMs === undefined ? {} : { pingInterval: pingMs }),
  };
  try {
    return await library.connect(settings);
  } catch (cause) {
    const reason = isError(cause) ? cause.message : String(cause);
    throw new BatonError(
      "STORE_UNAVAILABLE",
      `No NATS server could be reached at ${options.servers.join(", ")}: ${reason}. Nothing was done. ` +
        "Is it running, and are the address and the credentials right?",
      { cause },
    );
  }
}

function tlsOf({ ca, cert, key }: NonNullable<NatsOptions["tls"]>): NonNullable<NodeConnectionOptions["tls"]> {
  return {
    ...(ca === undefined ? {} : { caFile: ca }),
    ...(cert === undefined ? {} : { certFile: cert }),
    ...(key === undefined ? {} : { keyFile: key }),
  };
}

function authenticatorOf(
  { nkey, creds }: NatsOptions,
  { credsAuthenticator, nkeyAuthenticator }: Awaited<ReturnType<typeof loadNats>>,
): { authenticator?: Authenticator } {
  if (creds !== undefined) {
    readSecret(creds, "creds");
    // Read anew at every connection, because such files are replaced while processes run.
    return { authenticator: credsAuthenticator(() => readSecret(creds, "creds")) };
  }
  if (nkey !== undefined) {
    const seed = /S[A-Z0-9]{57}/.exec(new TextDecoder().decode(readSecret(nkey, "nkey")))?.[0];
    if (seed === undefined) throw new InvalidInput("nkey", nkey, "a file with the seed of an nkey");
    return { authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)) };
  }
  return {};
}

function readSecret(file: string, what: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new BatonError("STORE_UNAVAILABLE", `The ${what} file ${file} could not be read. Nothing was done.`, {
      cause,
    });
  }
}

/** Refuses a cluster of which any server that can be asked is too old. */
export async function checkServers(connection: NatsConnection): Promise<void> {
  const { info } = connection;
  if (info === undefined) throw new NoJetStream();
  if (!isNewEnough(info.version)) throw new ServerTooOld(info.version);
  if (info.jetstream !== true) throw new NoJetStream();
  const found = await Promise.all((info.connect_urls ?? []).map(versionAt));
  for (const version of found) if (version !== undefined && !isNewEnough(version)) throw new ServerTooOld(version);
}

/** Servers tell their version before they ask who one is. Undefined: it cannot be asked from here. */
function versionAt(address: string): Promise<string | undefined> {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/^\[|\]$/g, "");
  return new Promise((resolve) => {
    const socket = connectSocket({ host, port: Number(address.slice(at + 1)), timeout: PROBE_MS });
    let text = "";
    const end = (version: string | undefined): void => {
      socket.destroy();
      resolve(version);
    };
    socket.on("data", (bytes) => {
      text += bytes.toString("utf8");
      if (text.includes("\r\n")) end(/"version":"([^"]+)"/.exec(text)?.[1]);
    });
    socket.on("error", () => end(undefined));
    socket.on("timeout", () => end(undefined));
    socket.on("close", () => resolve(undefined));
  });
}

/** @param own whether the connection is closed with the wire */
export function wireOf(connection: NatsConnection, own: boolean): Wire {
  const listeners = new Set<(up: boolean) => void>();
  const outbox = new Outbox(connection, systemClock);
  const deniedListeners = new Set<(denied: Denied) => void>();
  void listen(
    connection,
    (up) => {
      for (const listener of listeners) listener(up);
    },
    (denied) => {
      for (const listener of deniedListeners) listener(denied);
    },
  );
  return {
    server: {
      get name() {
        return connection.info?.server_name;
      },
      get alone() {
        return connection.info?.cluster === undefined;
      },
      version: connection.info?.version ?? "0.0.0",
      maxPayload: connection.info?.max_payload ?? 1_048_576,
      jetstream: connection.info?.jetstream ?? false,
    },
    publish: (subject, data, options) => outbox.add(subject, data, options),
    subscribe(subject, receive): Subscription {
      const subscription = connection.subscribe(subject, {
        callback: (error, message) => {
          if (error !== null) return;
          try {
            receive(new ClientDelivery(message));
          } catch {
            // Thrown on, it would end the client's reader. A message that cannot be read is as good as lost.
          }
        },
      });
      return {
        unsubscribe: () => subscription.unsubscribe(),
        drain: () => {
          // What was published before goes out before.
          outbox.flush();
          // A connection that is gone has no interest left to be withdrawn.
          subscription.drain().catch(() => undefined);
        },
      };
    },
    watch(listener) {
      listeners.add(listener);
    },
    deny(listener) {
      deniedListeners.add(listener);
    },
    async close() {
      listeners.clear();
      deniedListeners.clear();
      outbox.flush();
      // What a socket that has just ended says of this write, it says within this turn. A client that is closed listens no more, and what nobody
      // listens to would end the process.
      await turn();
      if (own) await connection.close();
      // The application may have closed its connection first.
      else if (!connection.isClosed()) await connection.flush();
    },
  };
}

class ClientDelivery implements Delivery {
  readonly #message: Msg;

  constructor(message: Msg) {
    this.#message = message;
  }

  get subject(): string {
    return this.#message.subject;
  }

  get reply(): string {
    return this.#message.reply ?? "";
  }

  get data(): Uint8Array {
    return this.#message.data ?? EMPTY;
  }

  get status(): number {
    // What has somewhere to be acknowledged is a message. To read its headers would cost more than the rest of it.
    if (this.#message.reply?.startsWith(ACK_PREFIX) === true) return 0;
    return this.#message.headers?.code ?? 0;
  }

  get description(): string {
    return this.#message.headers?.description ?? "";
  }

  header(name: string): string | undefined {
    const value = this.#message.headers?.get(name);
    return value === "" ? undefined : value;
  }
}

async function listen(
  connection: NatsConnection,
  tell: (up: boolean) => void,
  deny: (denied: Denied) => void,
): Promise<void> {
  const statuses = connection.status();
  const { PermissionViolationError } = await loadNats();
  for await (const status of statuses) {
    if (status.type === "disconnect") tell(false);
    else if (status.type === "reconnect") tell(true);
    else if (status.type === "error" && status.error instanceof PermissionViolationError) deny(status.error);
  }
}
