import { BatonError, Fatal } from "../../../domain/errors.ts";
import { isError } from "../../../domain/realms.ts";
import type { RelayContext } from "../../context.ts";
import type { Outcome } from "../../outcome.ts";
import { DEFAULT_HTTP, type HttpSettings, type RelayMessage } from "../../settings.ts";
import { Breaker } from "../breaker.ts";
import type { Processor } from "../processor.ts";
import { Subscription } from "./dapr-subscriptions.ts";
import { headersOf } from "./headers.ts";
import { isUnserved, outcomeOf } from "./reply.ts";
import { secretBytes, signatureHeaders } from "./signature.ts";
import { urlOfMessage } from "./target.ts";
import { isUnsendable, messageOf, NotSent, openTransport, type Transport } from "./transport.ts";

/** One host, and how it goes with it. */
interface Host {
  readonly origin: string;
  readonly breaker: Breaker;
  inFlight: number;
  isKnockedAt: boolean;
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
/** Where no circuit keeps a message away from a target that cannot be reached, it stays away for so long by itself. */
const UNREACHABLE_PAUSE_MS = DEFAULT_HTTP.breaker?.openMs ?? 10_000;

/** Delivers by HTTP, to the target of the route. */
export async function openHttpProcessor(
  context: RelayContext,
  settings: HttpSettings,
  onRoom: () => void,
): Promise<Processor> {
  return new HttpProcessor(context, settings, onRoom, await openTransport(settings));
}

class HttpProcessor implements Processor {
  readonly #context: RelayContext;
  readonly #settings: HttpSettings;
  readonly #onRoom: () => void;
  readonly #transport: Transport;
  readonly #secrets: readonly Buffer[];
  readonly #hosts = new Map<string, Host>();
  /** The one host that all messages go to; undefined where the messages say. */
  readonly #only: Host | undefined;
  readonly #subscription: Subscription | undefined;

  constructor(context: RelayContext, settings: HttpSettings, onRoom: () => void, transport: Transport) {
    const { target } = settings;
    this.#context = context;
    this.#settings = settings;
    this.#onRoom = onRoom;
    this.#transport = transport;
    this.#secrets = settings.signingSecrets.map(secretBytes);
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
    return [...this.#hosts.values()].flatMap(({ origin, breaker }) => (breaker.isOpen ? [origin] : []));
  }

  get unreachable(): readonly string[] {
    return [...this.#hosts.values()].flatMap(({ origin, breaker }) => (breaker.isUnreachable ? [origin] : []));
  }

  /** As far as the host may have one more request. */
  async process(message: RelayMessage): Promise<Outcome> {
    let host: Host;
    try {
      host = this.#only ?? this.#hostOf(this.#urlOf(message));
    } catch (error) {
      return { type: "dead", reason: messageOf(error) };
    }
    const { breaker, origin } = host;
    if (this.#only === undefined && host.inFlight >= this.#settings.perHost)
      return { type: "back", reason: `${origin} has as many requests as it may.`, delayMs: FULL_PAUSE_MS };
    if (!breaker.enter()) {
      const delayMs = breaker.isUnreachable ? this.#unreachableMs() : breaker.waitMs + CLOSED_PAUSE_MS;
      return { type: "back", reason: `The circuit of ${origin} is open.`, delayMs };
    }
    host.inFlight += 1;
    try {
      return await this.#deliver(message, host);
    } finally {
      host.inFlight -= 1;
    }
  }

  async close(): Promise<void> {
    for (const { breaker } of this.#hosts.values()) breaker.close();
    await this.#transport.close();
  }

  async #deliver(message: RelayMessage, host: Host): Promise<Outcome> {
    const subscription = this.#subscription;
    if (subscription === undefined) return (await this.#send(this.#urlOf(message), message, host)).outcome;
    const url = await this.#find(() => subscription.url(), message, host);
    if (!(url instanceof URL)) return url;
    const sent = await this.#send(url, message, host);
    if (sent.status !== 404) return sent.outcome;
    // An application of another version may have moved: it is asked before its message is given up.
    const anew = await this.#find(() => subscription.urlInsteadOf(url), message, host);
    if (!(anew instanceof URL)) return anew;
    return anew.href === url.href ? sent.outcome : (await this.#send(anew, message, host)).outcome;
  }

  /** Where the application wants its messages. Not knowing that is never the message's fault. */
  async #find(look: () => Promise<URL>, { key, id }: RelayMessage, host: Host): Promise<URL | Outcome> {
    try {
      return await look();
    } catch (error) {
      if (error instanceof NotSent) return this.#unreachable(error, host);
      // Somebody answered, and that is what a probe is to find out.
      if (error instanceof BatonError) host.breaker.succeeded();
      else this.#failed(host, key ?? id, error);
      this.#context.tell({ type: "trouble", doing: "finding the application's subscription", error });
      return { type: "back", reason: messageOf(error), delayMs: DISCOVERY_PAUSE_MS };
    }
  }

  async #send(url: URL, message: RelayMessage, host: Host): Promise<Sent> {
    const { clock } = this.#context;
    const { breaker, origin } = host;
    const subject = message.key ?? message.id;
    try {
      const reply = await this.#transport.request(url, this.#requestOf(message));
      const outcome = outcomeOf(reply, this.#settings, clock.wall());
      if (isUnserved(reply.status)) breaker.failed(subject, "reason" in outcome ? outcome.reason : undefined);
      else breaker.succeeded();
      return { outcome, status: reply.status };
    } catch (error) {
      const cause = error instanceof NotSent ? error.cause : error;
      if (isUnsendable(cause)) {
        breaker.brokenOff();
        return unanswered({ type: "dead", reason: `The message cannot be sent by HTTP: ${messageOf(cause)}` });
      }
      // A look-up that led to a forbidden address.
      if (cause instanceof Fatal) {
        breaker.brokenOff();
        return unanswered({ type: "dead", reason: messageOf(cause) });
      }
      const isBrokenOff = message.signal.aborted && !isTimeout(message.signal);
      if (isBrokenOff) breaker.brokenOff();
      else if (error instanceof NotSent) return unanswered(this.#unreachable(error, host));
      else if (message.signal.aborted) breaker.failed(subject, messageOf(cause));
      else this.#failed(host, subject, cause);
      return unanswered({ type: "retry", reason: `${origin} broke off before it answered: ${messageOf(cause)}` });
    }
  }

  /**
   * The connection broke. The message may be the reason, so the failure counts. A proxy that accepts connections for an application that is
   * away looks the same: a knock tells, so that no further message pays for that.
   */
  #failed(host: Host, subject: string, error: unknown): void {
    host.breaker.failed(subject, messageOf(error));
    if (!host.breaker.isUnreachable && !host.isKnockedAt) void this.#knock(host);
  }

  async #knock(host: Host): Promise<void> {
    const { breaker, origin } = host;
    host.isKnockedAt = true;
    const error = await this.#transport.knock(new URL(origin));
    host.isKnockedAt = false;
    if (error !== undefined && !(error instanceof Fatal)) breaker.unreachable(unreachableReason(origin, error));
  }

  #unreachable({ cause }: NotSent, { origin, breaker }: Host): Outcome {
    const reason = unreachableReason(origin, cause);
    // A name that a message says, and that nobody has, is that message's own mistake.
    if (this.#only === undefined && isUnknownName(cause)) return { type: "retry", reason };
    breaker.unreachable(reason);
    return { type: "unreachable", target: origin, reason, delayMs: this.#unreachableMs() };
  }

  /**
   * Where the circuit keeps the relay from taking messages, the message is given back for others at once: their relay
   * may have a receiver that is well.
   */
  #unreachableMs(): number {
    if (this.#only?.breaker.isOpen === true) return 0;
    return Math.round(UNREACHABLE_PAUSE_MS * (0.5 + this.#context.random() / 2));
  }

  #requestOf(message: RelayMessage): Parameters<Transport["request"]>[1] {
    const { data, id, signal } = message;
    const signed =
      this.#secrets.length === 0 ? {} : signatureHeaders(this.#secrets, id, data, this.#context.clock.wall());
    return {
      method: this.#settings.method,
      headers: { ...headersOf(message, this.#settings), ...signed },
      body: Buffer.from(data.buffer, data.byteOffset, data.byteLength),
      signal,
    };
  }

  /** Of one with a subscription, only the host is meant. */
  #urlOf(message: RelayMessage): URL {
    const { target } = this.#settings;
    return target.type === "attribute" ? urlOfMessage(message, target) : new URL(target.url);
  }

  async #getJson(url: URL): Promise<unknown> {
    const signal = AbortSignal.timeout(this.#settings.connectTimeoutMs);
    const { status, body } = await this.#transport.request(url, { method: "GET", signal });
    if (status !== 200 || !body.isWhole)
      throw new BatonError("STORE_UNAVAILABLE", `${url.href} answered ${status}. It is asked again.`);
    return JSON.parse(body.text);
  }

  #hostOf(url: URL): Host {
    const { origin } = url;
    const known = this.#hosts.get(origin);
    if (known !== undefined) return known;
    const { breaker, connectTimeoutMs } = this.#settings;
    const parts = {
      target: origin,
      probeMs: connectTimeoutMs + PROBE_MS,
      onRoom: this.#onRoom,
      knock: async () => {
        const error = await this.#transport.knock(url);
        // An address that is forbidden is for the message to find out.
        return error === undefined || error instanceof Fatal;
      },
    };
    const host = { origin, breaker: new Breaker(this.#context, breaker, parts), inFlight: 0, isKnockedAt: false };
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

function unreachableReason(origin: string, error: unknown): string {
  return `${origin} could not be reached: ${messageOf(error)}`;
}

function isTimeout({ reason }: AbortSignal): boolean {
  return reason instanceof BatonError && reason.code === "HANDLER_TIMEOUT";
}

function isUnknownName(error: unknown): boolean {
  return isError(error) && "code" in error && error.code === "ENOTFOUND";
}
