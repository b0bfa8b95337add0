import { isError } from "../../domain/realms.ts";
import type { NatsConnection } from "@nats-io/transport-node";
import { BatonError } from "../../domain/errors.ts";
import { lazyWake } from "../../wake/lazy.ts";
import type { HintStore, WakeAdapter, WakeMessage } from "../../wake/port.ts";
import { openConnection, wireOf } from "./connection.ts";
import { greetedByAny } from "./presence.ts";
import { checkNatsOptions, type NatsOptions, parseNatsUrl, parseStoreOptions, type StoreOptions } from "./options.ts";
import { NatsHints } from "./wake-hints.ts";
import type { Wire } from "./wire.ts";

/** How long the server has to say that a subscription is there. */
const FLUSH_MS = 2_000;
/** A connection on which nothing comes may be idle or cut. After three of these without a sign of life it is taken for cut. */
const PING_MS = 4_000;
/** And to take what is left to send at the end, which it has mostly taken before. */
const LAST_FLUSH_MS = 500;

interface Listener {
  readonly missed: () => void;
  readonly deaf: (() => void) | undefined;
  readonly stop: () => void;
}

/** Wakes over NATS: messages by plain publish and subscribe, which nothing keeps; budgets in a key-value bucket. */
class NatsWake implements WakeAdapter {
  readonly name = "nats";
  readonly #connection: NatsConnection;
  readonly #wire: Wire;
  readonly #hints: NatsHints;
  readonly #listeners = new Set<Listener>();
  #isUp = true;

  constructor(connection: NatsConnection, own: boolean, options: StoreOptions) {
    this.#connection = connection;
    this.#wire = wireOf(connection, own);
    // Budgets live for a minute: there is no point in keeping them on a disk unless somebody says so.
    this.#hints = new NatsHints(this.#wire, parseStoreOptions({ ...options, storage: options.storage ?? "memory" }));
    this.#wire.watch((up) => {
      this.#isUp = up;
      // When it is back, the client has subscribed again by itself.
      for (const { missed, deaf } of this.#listeners)
        if (up) missed();
        else deaf?.();
    });
  }

  get hints(): HintStore | undefined {
    // While there is no connection nobody waits for an answer.
    return this.#isUp && this.#hints.isThere ? this.#hints : undefined;
  }

  async publish(messages: readonly WakeMessage[]): Promise<void> {
    if (!this.#isUp) throw notConnected();
    for (const { channel, text } of messages) this.#connection.publish(channel, text);
  }

  async listen(
    channel: string,
    heard: (text: string) => void,
    missed: () => void,
    deaf?: () => void,
  ): Promise<() => Promise<void>> {
    if (!this.#isUp) throw notConnected();
    let refused: Error | undefined;
    const subscription = this.#connection.subscribe(channel, {
      callback: (error, message) => {
        if (error !== null) refused = error;
        else heard(message.string());
      },
    });
    const listener: Listener = { missed, deaf, stop: () => subscription.unsubscribe() };
    this.#listeners.add(listener);
    const stop = async (): Promise<void> => {
      if (this.#listeners.delete(listener) && !this.#connection.isClosed()) listener.stop();
    };
    // The server has heard of the subscription, or has refused it, when it answers what was sent after it.
    if (await answered(this.#connection.flush(), FLUSH_MS)) {
      if (refused === undefined) return stop;
    } else refused = notConnected();
    await stop();
    throw refused;
  }

  async close(): Promise<void> {
    this.#hints.close();
    for (const listener of this.#listeners) if (!this.#connection.isClosed()) listener.stop();
    this.#listeners.clear();
    // What was told is not forgotten when the process ends right after it.
    if (this.#isUp) await answered(this.#connection.flush(), LAST_FLUSH_MS);
    await answered(this.#wire.close(), LAST_FLUSH_MS);
  }
}

/** False: not within reason. */
async function answered(work: Promise<void>, withinMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => resolve(false), withinMs);
  try {
    const done = work.then(
      () => true,
      () => false,
    );
    return await Promise.race([done, late]);
  } finally {
    clearTimeout(timer);
  }
}

function notConnected(): BatonError {
  return new BatonError(
    "STORE_UNAVAILABLE",
    "There is no connection to the NATS server that carries wakes. Work goes on; until it is back, idle workers find it by looking now and then.",
  );
}

function unreachable(servers: readonly string[], cause: unknown): BatonError {
  const reason = isError(cause) ? cause.message : String(cause);
  return new BatonError("STORE_UNAVAILABLE", `No NATS server could be reached at ${servers.join(", ")} (${reason}).`, {
    cause,
  });
}

/** A connection of its own, opened in the background. */
export function natsWake(options: NatsOptions): WakeAdapter {
  // It connects in the background, where nobody would hear of a slip.
  checkNatsOptions(options);
  return lazyWake("nats", async (signal) => {
    await greetedByAny(options.servers, signal).catch((cause: unknown) => {
      throw unreachable(options.servers, cause);
    });
    return new NatsWake(await openConnection(options, PING_MS), true, options.store ?? {});
  });
}

/** On a connection that the application has, and keeps: closing leaves it open. */
export function natsWakeOn(connection: NatsConnection, options: StoreOptions = {}): WakeAdapter {
  return new NatsWake(connection, false, options);
}

/** `nats://user:password@host:4222`, with the parameters that a store on NATS has. */
export function openNatsWakeUrl(url: string): WakeAdapter {
  return natsWake(parseNatsUrl(url));
}
