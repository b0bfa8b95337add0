import type * as UndiciModule from "undici";
import { BatonError, Fatal } from "../../../domain/errors.ts";
import type { RelayContext } from "../../context.ts";
import { type Outcome, shorten } from "../../outcome.ts";
import type { HttpSettings, RelayMessage } from "../../settings.ts";
import type { Processor } from "../processor.ts";
import { publicLookup } from "./addresses.ts";
import { Breaker } from "./breaker.ts";
import { Subscription } from "./dapr-subscriptions.ts";
import { headersOf } from "./headers.ts";
import { isUnserved, outcomeOf, type Reply } from "./reply.ts";
import { readBody } from "./read-body.ts";
import { secretBytes, signatureHeaders } from "./signature.ts";
import { urlOfMessage } from "./target.ts";

type Undici = typeof UndiciModule;

/** One host, and how it goes with it. */
interface Host {
  readonly breaker: Breaker;
  inFlight: number;
}

/** How a delivery went, and the status of the answer, if there was one. */
interface Sent {
  readonly outcome: Outcome;
  readonly status: number | undefined;
}

/** Before a message is tried again whose host has as many requests as it may. */
const FULL_PAUSE_MS = 1_000;
/** Added to the time for which a circuit is open: somebody has to probe first. */
const CLOSED_PAUSE_MS = 100;
/** A probe that has been with its receiver for so long, and has not failed, is being served. */
const PROBE_MS = 1_000;
/** Before an application is asked anew for its subscriptions. */
const DISCOVERY_PAUSE_MS = 1_000;
/** Of the hosts that messages name, so many are remembered. */
const MOST_HOSTS = 1_000;

/** Delivers by HTTP, to the target of the route. */
export async function openHttpProcessor(
  context: RelayContext,
  settings: HttpSettings,
  onRoom: () => void,
): Promise<Processor> {
  return new HttpProcessor(context, settings, onRoom, await loadUndici());
}

class HttpProcessor implements Processor {
  readonly #context: RelayContext;
  readonly #settings: HttpSettings;
  readonly #onRoom: () => void;
  readonly #undici: Undici;
  readonly #agent: UndiciModule.Agent;
  readonly #secrets: readonly Buffer[];
  readonly #hosts = new Map<string, Host>();
  /** The one host that all messages go to; undefined where the messages say. */
  readonly #only: Host | undefined;
  readonly #subscription: Subscription | undefined;
  #fixed: URL | undefined;

  constructor(context: RelayContext, settings: HttpSettings, onRoom: () => void, undici: Undici) {
    const { target } = settings;
    this.#context = context;
    this.#settings = settings;
    this.#onRoom = onRoom;
    this.#undici = undici;
    this.#secrets = settings.signingSecrets.map(secretBytes);
    const checked = target.type === "attribute" && !target.privateAddresses;
    this.#agent = new undici.Agent({
      connections: settings.perHost,
      connect: { timeout: settings.connectTimeoutMs, ...(checked ? { lookup: publicLookup } : {}) },
      // The delivery's own time is the only one: work may take hours, and the receiver answers when it is done.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    if (target.type === "dapr-subscription") {
      const { url, pubsub, topic } = target;
      this.#subscription = new Subscription((one) => this.#getJson(one), url, pubsub, topic);
    }
    this.#only = target.type === "attribute" ? undefined : this.#hostOf(new URL(target.url));
  }

  get most(): number {
    return this.#only === undefined ? Infinity : this.#settings.perHost;
  }

  get room(): number {
    return this.#only?.breaker.room ?? Infinity;
  }

  get openCircuits(): readonly string[] {
    return [...this.#hosts].flatMap(([origin, { breaker }]) => (breaker.isOpen ? [origin] : []));
  }

  async process(message: RelayMessage): Promise<Outcome> {
    const url = await this.#find(() => this.#urlOf(message));
    if (!(url instanceof URL)) return url;
    const sent = await this.#sendWithin(url, message);
    if (sent.status !== 404 || this.#subscription === undefined) return sent.outcome;
    // An application of another version may have moved: it is asked before its message is given up.
    const subscription = this.#subscription;
    const anew = await this.#find(() => subscription.urlInsteadOf(url));
    if (!(anew instanceof URL)) return anew;
    return anew.href === url.href ? sent.outcome : (await this.#sendWithin(anew, message)).outcome;
  }

  async #find(look: () => Promise<URL>): Promise<URL | Outcome> {
    try {
      return await look();
    } catch (error) {
      const reason = messageOf(error);
      if (error instanceof Fatal) return { type: "dead", reason };
      this.#context.tell({ type: "trouble", doing: "finding the application's subscription", error });
      return { type: "back", reason, delayMs: DISCOVERY_PAUSE_MS };
    }
  }

  /** As far as the host may have one more request. */
  async #sendWithin(url: URL, message: RelayMessage): Promise<Sent> {
    const host = this.#only ?? this.#hostOf(url);
    if (this.#only === undefined && host.inFlight >= this.#settings.perHost)
      return back(`${url.host} has as many requests as it may.`, FULL_PAUSE_MS);
    if (!host.breaker.enter())
      return back(`The circuit of ${url.host} is open.`, host.breaker.waitMs + CLOSED_PAUSE_MS);
    host.inFlight += 1;
    try {
      return await this.#send(url, message, host.breaker);
    } finally {
      host.inFlight -= 1;
    }
  }

  async close(): Promise<void> {
    for (const { breaker } of this.#hosts.values()) breaker.close();
    await this.#agent.destroy();
  }

  async #send(url: URL, message: RelayMessage, breaker: Breaker): Promise<Sent> {
    const { clock } = this.#context;
    const subject = message.key ?? message.id;
    try {
      const reply = await this.#request(url, message);
      if (isUnserved(reply.status)) breaker.failed(subject);
      else breaker.succeeded();
      return { outcome: outcomeOf(reply, this.#settings, clock.wall()), status: reply.status };
    } catch (error) {
      if (isUnsendable(error)) {
        breaker.brokenOff();
        return unanswered({ type: "dead", reason: `The message cannot be sent by HTTP: ${messageOf(error)}` });
      }
      if (message.signal.aborted && !isTimeout(message.signal)) breaker.brokenOff();
      else breaker.failed(subject);
      // A look-up that led to a forbidden address.
      const refused = error instanceof Fatal ? error : error instanceof Error ? error.cause : undefined;
      if (refused instanceof Fatal) return unanswered({ type: "dead", reason: messageOf(refused) });
      const reason = `${url.host} could not be reached or broke off: ${messageOf(error)}`;
      return unanswered({ type: "retry", reason });
    }
  }

  async #request(url: URL, message: RelayMessage): Promise<Reply> {
    const { data, id, signal } = message;
    const signed =
      this.#secrets.length === 0 ? {} : signatureHeaders(this.#secrets, id, data, this.#context.clock.wall());
    const response = await this.#undici.request(url, {
      dispatcher: this.#agent,
      method: this.#settings.method,
      headers: { ...headersOf(message, this.#settings), ...signed },
      body: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
      signal,
    });
    return await replyOf(response);
  }

  async #urlOf(message: RelayMessage): Promise<URL> {
    const { target } = this.#settings;
    switch (target.type) {
      case "url":
        return (this.#fixed ??= new URL(target.url));
      case "attribute":
        return urlOfMessage(message, target);
      case "dapr-subscription":
        // Opened with the processor.
        return (await this.#subscription?.url()) ?? new URL(target.url);
    }
  }

  async #getJson(url: URL): Promise<unknown> {
    const signal = AbortSignal.timeout(this.#settings.connectTimeoutMs);
    const response = await this.#undici.request(url, { dispatcher: this.#agent, signal });
    const { status, body } = await replyOf(response);
    if (status !== 200 || !body.isWhole)
      throw new BatonError("STORE_UNAVAILABLE", `${url.href} answered ${status}. It is asked again.`);
    return JSON.parse(body.text);
  }

  #hostOf({ origin }: URL): Host {
    const known = this.#hosts.get(origin);
    if (known !== undefined) return known;
    const { breaker, connectTimeoutMs } = this.#settings;
    const probe = { target: origin, probeMs: connectTimeoutMs + PROBE_MS, onRoom: this.#onRoom };
    const host = { breaker: new Breaker(this.#context, breaker, probe), inFlight: 0 };
    this.#hosts.set(origin, host);
    if (this.#hosts.size > MOST_HOSTS) this.#forgetOne();
    return host;
  }

  #forgetOne(): void {
    for (const [origin, { inFlight, breaker }] of this.#hosts) {
      if (inFlight > 0 || breaker.isOpen) continue;
      this.#hosts.delete(origin);
      return;
    }
  }
}

function unanswered(outcome: Outcome): Sent {
  return { outcome, status: undefined };
}

function back(reason: string, delayMs: number): Sent {
  return unanswered({ type: "back", reason, delayMs });
}

async function replyOf({ statusCode, headers, body }: UndiciModule.Dispatcher.ResponseData): Promise<Reply> {
  const retryAfter = headers["retry-after"];
  return {
    status: statusCode,
    retryAfter: typeof retryAfter === "string" ? retryAfter : undefined,
    body: await readBody(body),
  };
}

/** The request never left: that says nothing of the target, and will be the same next time. */
function isUnsendable(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "UND_ERR_INVALID_ARG";
}

function isTimeout({ reason }: AbortSignal): boolean {
  return reason instanceof BatonError && reason.code === "HANDLER_TIMEOUT";
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return shorten(error.message === "" ? error.name : error.message);
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
