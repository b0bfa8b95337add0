import type { Pool } from "pg";
import { systemClock } from "../../domain/clock.ts";
import { Closed, InvalidInput } from "../../domain/errors.ts";
import type { WakeAdapter, WakeMessage } from "../../wake/port.ts";
import { ownConnections, pooledConnections } from "./connections.ts";
import type { Connection, Connections } from "./link.ts";

/** PostgreSQL's own limit is 8,000 bytes for a payload, and 63 for the name of a channel. */
const LONGEST_TEXT_BYTES = 7_900;
const LONGEST_CHANNEL_BYTES = 63;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

export interface Listener {
  readonly heard: (text: string) => void;
  readonly missed: () => void;
  readonly deaf?: (() => void) | undefined;
}

/** Wakes over `LISTEN` and `NOTIFY`, with a pool of the application's, which stays open, or a URL. */
export function postgresWake(server: Pool | string): WakeAdapter {
  return new PostgresWake(typeof server === "string" ? ownConnections(server) : pooledConnections(server));
}

export class PostgresWake implements WakeAdapter {
  readonly name = "postgres";
  /** A table of counters would cost a write for each wake: more than it saves. */
  readonly hints = undefined;
  readonly #connections: Connections;
  readonly #listeners = new Map<string, Set<Listener>>();
  #connection: Promise<Connection> | undefined;
  #last: Promise<void> = Promise.resolve();
  #pauseMs = FIRST_PAUSE_MS;
  #hears = false;
  readonly #closing = new AbortController();

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  async publish(messages: readonly WakeMessage[]): Promise<void> {
    for (const { channel, text } of messages) {
      checkChannel(channel);
      if (Buffer.byteLength(text) > LONGEST_TEXT_BYTES) throw new InvalidInput("text", text, "at most 7,900 bytes");
    }
    await this.#query("SELECT pg_notify(c, t) FROM unnest($1::text[], $2::text[]) AS u(c, t)", [
      messages.map(({ channel }) => channel),
      messages.map(({ text }) => text),
    ]);
  }

  async listen(
    channel: string,
    heard: (text: string) => void,
    missed: () => void,
    deaf?: () => void,
  ): Promise<() => Promise<void>> {
    checkChannel(channel);
    const listener: Listener = { heard, missed, deaf };
    const listeners = this.#add(channel, listener);
    const leave = (): boolean => {
      listeners.delete(listener);
      if (this.#closed || listeners.size > 0 || this.#listeners.get(channel) !== listeners) return false;
      return this.#listeners.delete(channel);
    };
    try {
      await this.#query(`LISTEN "${channel}"`);
    } catch (error) {
      // Whoever was refused comes again, and must not be told twice then.
      leave();
      throw error;
    }
    return async () => {
      if (leave() && this.#connection !== undefined) await this.#query(`UNLISTEN "${channel}"`);
    };
  }

  /** The same for good: who cannot listen now does so later, and is told that he may have missed something. Resolves when it was tried. */
  async keepListening(channel: string, listener: Listener): Promise<void> {
    try {
      await this.listen(channel, listener.heard, listener.missed);
    } catch {
      this.#add(channel, listener);
      this.#again();
    }
  }

  /** Whoever listens hears nothing meanwhile. */
  get isDeaf(): boolean {
    return !this.#hears;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closing.abort();
    this.#hears = false;
    this.#listeners.clear();
    // One that is only just made is given back when it comes, which may be never.
    this.#connection?.then(
      (connection) => connection.release(true),
      () => undefined,
    );
  }

  #add(channel: string, listener: Listener): Set<Listener> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners);
    return listeners.add(listener);
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** One after the other, as the connection wants it. */
  async #query(text: string, values: readonly unknown[] = []): Promise<void> {
    const before = this.#last;
    const mine = (async (): Promise<void> => {
      await before;
      const { client } = await this.#open();
      await client.query(text, [...values]);
    })();
    this.#last = mine.catch(() => undefined);
    await mine;
  }

  #open(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new Closed("The connection that carries wakes"));
    if (this.#connection === undefined) {
      const made = this.#connect();
      this.#connection = made;
      made.catch(() => {
        if (this.#connection === made) this.#connection = undefined;
      });
    }
    return this.#connection;
  }

  async #connect(): Promise<Connection> {
    const connection = await this.#connections.connect(this.#closing.signal);
    const { client } = connection;
    let isLost = false;
    const lost = (): void => {
      if (isLost || this.#closed) return;
      isLost = true;
      this.#hears = false;
      connection.release(true);
      this.#connection = undefined;
      for (const listeners of this.#listeners.values()) for (const { deaf } of listeners) deaf?.();
      this.#again();
    };
    client.on("error", lost);
    client.on("end", lost);
    client.on("notification", ({ channel, payload }) => {
      for (const { heard } of this.#listeners.get(channel) ?? []) heard(payload ?? "");
    });
    const giveBack = (): void => {
      if (!isLost) connection.release(true);
      isLost = true;
    };
    // A server that stands still now answers nothing, and its silence would keep the process alive for a while.
    this.#closing.signal.addEventListener("abort", giveBack, { once: true });
    try {
      this.#closing.signal.throwIfAborted();
      for (const channel of this.#listeners.keys()) await client.query(`LISTEN "${channel}"`);
    } catch (error) {
      // Refused, as a standby does. Whoever listens comes again, over a connection of its own.
      giveBack();
      throw error;
    } finally {
      this.#closing.signal.removeEventListener("abort", giveBack);
    }
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#hears = true;
    return connection;
  }

  #again(): void {
    if (this.#closed || this.#listeners.size === 0) return;
    systemClock.setTimer(this.#pauseMs, () => {
      if (this.#closed) return;
      this.#open().then(
        () => {
          for (const listeners of this.#listeners.values()) for (const { missed } of listeners) missed();
        },
        () => this.#again(),
      );
    });
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

function checkChannel(channel: string): void {
  if (/^[A-Za-z0-9._-]+$/.test(channel) && channel.length <= LONGEST_CHANNEL_BYTES) return;
  throw new InvalidInput("channel", channel, `1 to ${LONGEST_CHANNEL_BYTES} letters, digits, -, _ or dots`);
}
