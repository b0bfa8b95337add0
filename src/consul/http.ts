/** Requests to Consul's HTTP API, and what it means when no answer comes. */
import { readFileSync } from "node:fs";
import type { Agent, buildConnector, Dispatcher, request } from "undici";
import { BatonError, Closed, InvalidInput } from "../domain/errors.ts";
import { isError } from "../domain/realms.ts";
import type { loadUndici } from "./client-library.ts";
import type { ConsulSettings } from "./options.ts";

/** Longer than an election takes, shorter than the shortest lease. */
const ANSWER_MS = 5_000;
const CONNECT_MS = 3_000;
/**
 * Consul takes 200 connections from one address (`http_max_conns_per_client`). Those that wait keep theirs for long, so
 * they have a pool of their own, and leave room for a second process.
 */
const CALL_CONNECTIONS = 32;
export const WAIT_CONNECTIONS = 64;
/** For queries that watch holds, which must not stand in line behind those that wait. */
export const HOLD_CONNECTIONS = 16;

/** Where the connection itself failed, nothing was sent. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

const BAD_LEASE = "Invalid Session TTL";

/** No answer, or one that says nothing of what was done. */
export class Unanswered extends Error {
  /** Consul may have done what it was asked for. */
  readonly isDoubtful: boolean;

  constructor(message: string, isDoubtful: boolean, options?: ErrorOptions) {
    super(message, options);
    this.isDoubtful = isDoubtful;
  }
}

export interface Question {
  readonly method: "GET" | "PUT";
  /** Below `/v1`, with every part encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly body?: unknown;
  /** A blocking query: Consul answers when something has changed, or after this time. */
  readonly waitMs?: number;
  /** Watches a hold: the process may end meanwhile. */
  readonly isForHolds?: boolean;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  /** `X-Consul-Index`. */
  readonly index: number;
}

export class ConsulHttp {
  readonly #settings: ConsulSettings;
  readonly #send: typeof request;
  readonly #calls: Agent;
  readonly #waits: Agent;
  readonly #holds: Agent;
  #isClosed = false;

  constructor(settings: ConsulSettings, { Agent, buildConnector, request }: Awaited<ReturnType<typeof loadUndici>>) {
    this.#settings = settings;
    this.#send = request;
    const connect = connectOptions(settings);
    this.#calls = new Agent({
      connect,
      connections: CALL_CONNECTIONS,
      headersTimeout: ANSWER_MS,
      bodyTimeout: ANSWER_MS,
    });
    this.#waits = new Agent({ connect, connections: WAIT_CONNECTIONS, bodyTimeout: ANSWER_MS });
    this.#holds = new Agent({
      connect: withoutKeepingAlive(buildConnector(connect)),
      connections: HOLD_CONNECTIONS,
      bodyTimeout: ANSWER_MS,
    });
  }

  /** Any status below 500 but 403 and 429; everything else is thrown. */
  async ask({ method, path, query = {}, body, waitMs, isForHolds = false, signal }: Question): Promise<Answer> {
    if (this.#isClosed) throw new Closed("The connection to Consul");
    const { origin, datacenter, namespace } = this.#settings;
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) parameters.set(name, String(value));
    if (waitMs !== undefined) parameters.set("wait", `${waitMs}ms`);
    if (datacenter !== undefined) parameters.set("dc", datacenter);
    if (namespace !== undefined) parameters.set("ns", namespace);
    const options: Parameters<typeof request>[1] = {
      method,
      dispatcher: isForHolds ? this.#holds : waitMs === undefined ? this.#calls : this.#waits,
      headers: this.#headers(),
      // Consul adds up to a sixteenth of its own, so that not all who wait come back at once.
      ...(waitMs === undefined ? {} : { headersTimeout: waitMs + waitMs / 16 + ANSWER_MS }),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    };
    const answer = await answerTo(method, () => this.#send(`${origin}/v1${path}?${parameters.toString()}`, options));
    return checked(answer, method, path);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#calls.destroy(), this.#waits.destroy(), this.#holds.destroy()]);
  }

  #headers(): Record<string, string> {
    const { basicAuth } = this.#settings;
    const token = this.#token();
    return {
      ...(token === undefined ? {} : { "X-Consul-Token": token }),
      ...(basicAuth === undefined
        ? {}
        : { Authorization: `Basic ${Buffer.from(basicAuth, "utf8").toString("base64")}` }),
    };
  }

  #token(): string | undefined {
    const { token, tokenFile } = this.#settings;
    if (token !== undefined || tokenFile === undefined) return token;
    return readNamed(tokenFile, "token").toString("utf8").trim();
  }
}

async function answerTo(method: string, sending: () => Promise<Dispatcher.ResponseData<unknown>>): Promise<Answer> {
  try {
    const { statusCode, headers, body } = await sending();
    const text = await body.text();
    return { status: statusCode, text, index: Number(headers["x-consul-index"] ?? 0) };
  } catch (cause) {
    const code = isError(cause) && "code" in cause ? String(cause.code) : "";
    const reason = isError(cause) ? cause.message : String(cause);
    throw new Unanswered(`${code} ${reason}`.trim(), method !== "GET" && !NOT_SENT.has(code), { cause });
  }
}

function checked(answer: Answer, method: string, path: string): Answer {
  const what = `${method} ${path}`;
  const { status, text } = answer;
  const said = text.slice(0, 200).trim();
  if (status === 403 || status === 401) throw denied(what, said);
  // With 500 up to Consul 1.11, with 400 later.
  if (said.includes(BAD_LEASE)) throw leaseRefused(said);
  // Without a leader Consul answers 500, also to what it had already handed to its log. 429: too many connections.
  if (status >= 500) throw new Unanswered(`Consul answered ${status}: ${said}`, method !== "GET");
  if (status === 429) throw new Unanswered(`Consul answered 429: ${said}`, false);
  if (status === 400)
    throw new BatonError("STORE_UNAVAILABLE", `Consul did not accept ${what}: ${said}. Nothing was done.`);
  return answer;
}

function leaseRefused(said: string): InvalidInput {
  const rule = "a lease that the servers' session_ttl_min allows";
  return new InvalidInput(
    "leaseMs",
    said,
    rule,
    `Consul refused the lease: ${said}. Take ${rule}, or lower that in their configuration; shortest-lease in the store's URL only says what it is.`,
  );
}

export function denied(what: string, said: string): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    `Consul refused ${what}: ${said}. Nothing was done. The token needs write on the prefix's keys and on sessions.`,
  );
}

/** A process that forgot to release a lock can end all the same: the lock then ends with its lease. */
function withoutKeepingAlive(connector: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connector(options, (...[error, socket]: buildConnector.CallbackArgs) => {
      if (error !== null) return callback(error, null);
      socket.unref();
      // Undici calls it for each request.
      socket.ref = () => socket;
      callback(null, socket);
    });
}

function connectOptions({ tls, socket }: ConsulSettings): buildConnector.BuildOptions {
  return {
    timeout: CONNECT_MS,
    ...(socket === undefined ? {} : { socketPath: socket }),
    ...(tls?.ca === undefined ? {} : { ca: readNamed(tls.ca, "certificate authority") }),
    ...(tls?.cert === undefined ? {} : { cert: readNamed(tls.cert, "client certificate") }),
    ...(tls?.key === undefined ? {} : { key: readNamed(tls.key, "client key") }),
    ...(tls?.serverName === undefined ? {} : { servername: tls.serverName }),
    ...(tls?.verify === undefined ? {} : { rejectUnauthorized: tls.verify }),
  };
}

function readNamed(file: string, what: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new BatonError("STORE_UNAVAILABLE", `The ${what} file ${file} could not be read. Nothing was done.`, {
      cause,
    });
  }
}
