/**
 * The HTTP client: sends requests, and tells those that never left from those that the application may have seen. It
 * also knocks: opens a connection, sends nothing, and closes it after a moment.
 */
import type { Socket } from "node:net";
import { systemClock } from "../../../domain/clock.ts";
import { isError } from "../../../domain/realms.ts";
import type * as UndiciModule from "undici";
import { BatonError } from "../../../domain/errors.ts";
import { shorten } from "../../outcome.ts";
import type { HttpSettings, HttpTarget } from "../../settings.ts";
import { publicLookup } from "./addresses.ts";
import { readBody } from "./read-body.ts";
import type { Reply } from "./reply.ts";

type Undici = typeof UndiciModule;
type ConnectOptions = UndiciModule.buildConnector.Options;
type ConnectCallback = UndiciModule.buildConnector.Callback;
type Handler = UndiciModule.Dispatcher.DispatchHandler;

/**
 * A proxy accepts connections also for an application that is away, and breaks them off when it has found that out. An HTTP
 * server waits for the request.
 */
const KNOCK_MS = 250;
/**
 * A target that has not answered yet gets a moment before the first byte on each new connection: what is accepted and broken off at
 * once, as by a proxy whose application is away, has then seen nothing of a message. The news of it takes as long as a way there and back.
 */
const MOMENT_MS = [25, 100] as const;
const MOMENT_PER_WAY = 1.5;
/** Of the event loop. */
const TURNS = 3;
/** With URLs out of messages there may be any number of targets. One that is forgotten is given a moment again. */
const MOST_KNOWN = 1_000;

/** No byte of the request was sent: no name, no connection, or no TLS. Its cause says which. */
export class NotSent extends Error {
  constructor(cause: unknown) {
    super("No byte of the request was sent.", { cause });
  }
}

export interface HttpRequest {
  readonly method: HttpSettings["method"];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  readonly signal: AbortSignal;
}

export type TransportSettings = Pick<HttpSettings, "connectTimeoutMs" | "perHost"> & { readonly target: HttpTarget };

export async function openTransport(settings: TransportSettings): Promise<Transport> {
  return new Transport(await loadUndici(), settings);
}

export class Transport {
  readonly #undici: Undici;
  readonly #agent: UndiciModule.Agent;
  readonly #connect: UndiciModule.buildConnector.connector;
  /** Origins whose last request was answered. */
  readonly #answering = new Set<string>();

  constructor(undici: Undici, { connectTimeoutMs, perHost, target }: TransportSettings) {
    this.#undici = undici;
    const isChecked = target.type === "attribute" && !target.privateAddresses;
    const connect = { timeout: connectTimeoutMs, ...(isChecked ? { lookup: publicLookup } : {}) };
    // Its type leaves the port out of what it is built with; it comes with each connection.
    this.#connect = undici.buildConnector({ ...connect, port: 0 });
    this.#agent = new undici.Agent({
      connections: perHost,
      connect: (options, callback) => this.#connectCarefully(options, callback),
      // The delivery's own time is the only one: work may take hours, and the receiver answers when it is done.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /** Rejects with `NotSent` where the application cannot have seen anything of the request. */
  async request(url: URL, { method, headers = {}, body, signal }: HttpRequest): Promise<Reply> {
    let isSent = false;
    const dispatcher = this.#agent.compose((dispatch) => (options, handler) => {
      return dispatch(
        options,
        hearStart(handler, () => (isSent = true)),
      );
    });
    try {
      const sent = { dispatcher, method, headers, body: body ?? null, signal };
      const response = await this.#undici.request(url, sent);
      this.#note(url);
      const retryAfter = response.headers["retry-after"];
      return {
        status: response.statusCode,
        retryAfter: typeof retryAfter === "string" ? retryAfter : undefined,
        body: await readBody(response.body),
      };
    } catch (cause) {
      this.#answering.delete(url.origin);
      if (isSent || isUnsendable(cause)) throw cause;
      throw new NotSent(cause);
    }
  }

  /** Resolves with what is in the way of a connection, and with undefined when there is nothing. */
  knock({ protocol, hostname, host, port }: URL): Promise<Error | undefined> {
    return new Promise((resolve) => {
      // As undici does for its own connections: an address in brackets is a name to nobody.
      const name = hostname.replace(/^\[|\]$/g, "");
      this.#connect({ protocol, hostname: name, host, port }, (error, socket) => {
        if (error !== null) resolve(error);
        else seeIfItStaysOpen(socket, resolve);
      });
    });
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #connectCarefully(options: ConnectOptions, callback: ConnectCallback): void {
    const began = systemClock.monotonic();
    this.#connect(options, (...[error, socket]: UndiciModule.buildConnector.CallbackArgs) => {
      if (error !== null) return callback(error, null);
      if (this.#answering.has(`${options.protocol}//${options.host ?? ""}`)) return callback(null, socket);
      const wayMs = (systemClock.monotonic() - began) * MOMENT_PER_WAY;
      const momentMs = Math.min(Math.max(wayMs, MOMENT_MS[0]), MOMENT_MS[1]);
      whenOpenFor(socket, momentMs, (closed) =>
        closed === undefined ? callback(null, socket) : callback(closed, null),
      );
    });
  }

  #note({ origin }: URL): void {
    if (this.#answering.size >= MOST_KNOWN) this.#answering.clear();
    this.#answering.add(origin);
  }
}

/** Calls back with the reason, or with undefined when the other side has waited for a request for a moment. Closes the socket. */
function seeIfItStaysOpen(socket: Socket, tell: (error: Error | undefined) => void): void {
  whenOpenFor(socket, KNOCK_MS, (error) => {
    socket.destroy();
    tell(error);
  });
}

/** Calls back with undefined when the socket has stayed open for so long, as it was; or with why it did not. */
function whenOpenFor(socket: Socket, forMs: number, tell: (error: Error | undefined) => void): void {
  const end = (error?: Error): void => {
    clearTimeout(timer);
    clearImmediate(immediate);
    socket.off("error", end).off("end", close).off("close", close).off("data", keep).pause();
    // Nobody listens for a moment, or for ever.
    if (error !== undefined) socket.on("error", () => undefined).destroy();
    tell(error);
  };
  const close = (): void => end(new Error("the connection was accepted and closed again"));
  // A server that speaks first: that is for the client to understand.
  const keep = (chunk: Buffer): void => {
    end();
    socket.unshift(chunk);
  };
  // Where this process itself stood still, what came meanwhile is read before the time counts as over.
  const readOn = (turns: number): void => {
    if (turns === 0) end();
    else immediate = setImmediate(readOn, turns - 1);
  };
  let immediate: NodeJS.Immediate | undefined;
  const timer = setTimeout(readOn, forMs, TURNS);
  socket.on("error", end).on("end", close).on("close", close);
  // Without a reader its end would not be noticed.
  socket.on("data", keep);
}

/** The message cannot be said in HTTP: that says nothing of the target, and will be the same next time. */
export function isUnsendable(error: unknown): boolean {
  return isError(error) && "code" in error && error.code === "UND_ERR_INVALID_ARG";
}

export function messageOf(error: unknown): string {
  if (!isError(error)) return String(error);
  // A name with several addresses: none of them could be connected to, and each has its own reason.
  if (error instanceof AggregateError && error.message === "")
    return shorten(error.errors.map((one: unknown) => messageOf(one)).join("; "));
  return shorten(error.message === "" ? error.name : error.message);
}

/** The client says so right before it writes the first byte. */
function hearStart(handler: Handler, onStart: () => void): Handler {
  return {
    onRequestStart: (controller, context: unknown) => {
      onStart();
      handler.onRequestStart?.(controller, context);
    },
    onRequestUpgrade: (...facts) => handler.onRequestUpgrade?.(...facts),
    onResponseStart: (...facts) => handler.onResponseStart?.(...facts),
    onResponseData: (...facts) => handler.onResponseData?.(...facts),
    onResponseEnd: (...facts) => handler.onResponseEnd?.(...facts),
    onResponseError: (...facts) => handler.onResponseError?.(...facts),
  };
}

async function loadUndici(): Promise<Undici> {
  try {
    return await import("undici");
  } catch (cause) {
    throw new BatonError(
      "ENGINE_MISSING",
      "Delivery by HTTP needs the package undici, which is not installed. Nothing was done. Run: npm install undici",
      { cause },
    );
  }
}
