/**
 * What the engine needs of a client: to send a command, to listen, to know whether the server is there. The client of the application may
 * be one for a single server, for a cluster or for sentinels; each wants its commands in another way.
 */
import { Closed } from "../../domain/errors.ts";
import { Channels, type Subscriber } from "./channels.ts";
import { destroyForGood } from "./destroy-for-good.ts";

export interface CommandOptions {
  readonly typeMapping?: Readonly<Record<string, never>>;
  readonly abortSignal?: AbortSignal;
}

interface Listening extends Subscriber {
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
  destroy(): unknown;
}

/** `createClient()` of the package @redis/client, or of redis. */
export interface PlainClient extends Listening {
  readonly isReady: boolean;
  readonly isOpen: boolean;
  sendCommand(args: readonly string[], options?: CommandOptions): Promise<unknown>;
  duplicate(): PlainClient;
  connect(): Promise<unknown>;
}

/** `createCluster()`. */
export interface ClusterClient extends Listening {
  readonly masters: readonly unknown[];
  sendCommand(
    firstKey: string | undefined,
    isReadonly: boolean | undefined,
    args: string[],
    options?: CommandOptions,
  ): Promise<unknown>;
}

/** `createSentinel()`. */
export interface SentinelClient extends Listening {
  readonly isReady: boolean;
  getMasterNode(): unknown;
  sendCommand(isReadonly: boolean | undefined, args: string[], options?: CommandOptions): Promise<unknown>;
}

export type RedisClient = PlainClient | ClusterClient | SentinelClient;

export function isCluster(client: RedisClient): client is ClusterClient {
  return "masters" in client;
}

function isSentinel(client: RedisClient): client is SentinelClient {
  return "getMasterNode" in client;
}

/** A command that could not even be sent is given up after this; the client would keep it for ever. */
const UNSENT_MS = 5_000;

/** Replies as they come, whatever else the application wants of its client. The signal ends only what was not sent. */
function commandOptions(): CommandOptions {
  return { typeMapping: {}, abortSignal: AbortSignal.timeout(UNSENT_MS) };
}

/** The client, as one thing for all three kinds. */
export class Wire {
  readonly client: RedisClient;
  readonly #owned: boolean;
  readonly #onReady = new Listeners();
  /** Of our own, if there is one; it may still be connecting. */
  #listening: PlainClient | undefined;
  #channels: Promise<Channels> | undefined;
  readonly #missed = new Listeners();
  readonly #deaf = new Listeners();
  /** Commands and subscriptions that wait for their replies. */
  readonly #waiting = new Set<(error: Error) => void>();
  #closed = false;

  constructor(client: RedisClient, owned: boolean) {
    this.client = client;
    this.#owned = owned;
    client.on("ready", this.#ready);
    // What goes wrong is told to whoever asked for something; an error that nobody listens to would end the process.
    client.on("error", ignore);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** A cluster is never ready or not as a whole. */
  get isReady(): boolean {
    return isCluster(this.client) || this.client.isReady;
  }

  /** Where a command goes is decided by the key. */
  send(key: string, args: string[]): Promise<unknown> {
    if (this.#closed) return Promise.reject(new Closed());
    return this.#untilClosed(this.#send(key, args));
  }

  /** The client does not answer any more what is not answered when this is closed. */
  #untilClosed<T>(asked: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      const over = (): void => void this.#waiting.delete(reject);
      asked.finally(over).then(resolve, reject);
    });
  }

  #send(key: string, args: string[]): Promise<unknown> {
    const { client } = this;
    if (isCluster(client)) return client.sendCommand(key, false, args, commandOptions());
    if (isSentinel(client)) return client.sendCommand(false, args, commandOptions());
    return client.sendCommand(args, commandOptions());
  }

  onReady(listener: () => void): () => void {
    return this.#onReady.add(listener);
  }

  /**
   * Resolves when messages surely arrive, through reconnects too, until what it resolves with is called.
   *
   * @param missed called when messages may have been lost on the way
   * @param deaf called when nothing is heard any more, as far as that is known: a cluster has many connections, and says nothing of one
   */
  async listen(
    channel: string,
    heard: (message: string) => void,
    missed: () => void,
    deaf: () => void = ignore,
  ): Promise<() => void> {
    if (this.#closed) throw new Closed();
    this.#channels ??= this.#openChannels();
    const stop = await this.#untilClosed(this.#channels.then((channels) => channels.listen(channel, heard)));
    const forgets = [this.#missed.add(missed), this.#deaf.add(deaf)];
    return () => {
      for (const forget of forgets) forget();
      if (!this.#closed) stop();
    };
  }

  /** What the application brought along stays open. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.client.off("ready", this.#ready);
    if (this.#listening !== undefined) destroyForGood(this.#listening);
    if (this.#owned) destroyForGood(this.client);
    // Errors may still be on their way to one that the application keeps open, but then they are its own.
    else this.client.off("error", ignore);
    for (const reject of this.#waiting) reject(new Error("The connection was closed before the server answered."));
    this.#waiting.clear();
    // Those who wait for the server wait no more.
    this.#ready();
  }

  readonly #ready = (): void => this.#onReady.tell();

  async #openChannels(): Promise<Channels> {
    try {
      return new Channels(await this.#openListening());
    } catch (error) {
      this.#channels = undefined;
      throw error;
    }
  }

  /** A connection of its own for those who listen: the application's may be of a kind that can do nothing else meanwhile. */
  async #openListening(): Promise<Listening> {
    const { client } = this;
    if (isCluster(client) || isSentinel(client)) return client;
    const listening = client.duplicate();
    this.#listening = listening;
    listening.on("error", ignore);
    await listening.connect();
    listening.on("reconnecting", () => this.#deaf.tell());
    listening.on("ready", () => this.#missed.tell());
    return listening;
  }
}

class Listeners {
  readonly #all = new Set<() => void>();

  /** Returns what forgets it. */
  add(listener: () => void): () => void {
    this.#all.add(listener);
    return () => this.#all.delete(listener);
  }

  tell(): void {
    for (const listener of this.#all) listener();
  }
}

function ignore(): void {
  // Deliberately nothing.
}
