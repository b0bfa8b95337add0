/** A NATS server with JetStream, in memory and in whatever time the clock tells. All of its faults are asked for. */
import type { Clock } from "../../src/domain/clock.ts";
import type { ServerFacts } from "../../src/engines/nats/wire.ts";
import { Api, API_PREFIX } from "./api.ts";
import { Batches } from "./batches.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import type { Outlet, Sent } from "./consumer.ts";
import { ApiError } from "./errors.ts";
import { CALM_SERVER, type ServerFaults } from "./faults.ts";
import { writeHeaders } from "./headers.ts";
import type { Publication, Stream } from "./stream.ts";
import { matches } from "./subjects.ts";

export interface ServerOptions {
  readonly clock: Clock;
  readonly faults?: ServerFaults;
  readonly facts?: Partial<ServerFacts>;
}

export interface RestartOptions {
  /** How long nobody can connect. */
  readonly downMs?: number;
  /** Acknowledgements that were confirmed within this time are forgotten: their messages are there, and come, again. */
  readonly forgetAcksMs?: number;
}

/** A message on its way. */
export interface Packet {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
  readonly headers: Uint8Array | undefined;
}

/** A connection as the server sees it. */
export interface Session {
  /** Patterns by the number of the subscription. */
  readonly subscriptions: Map<number, string>;
  deliver(subscription: number, packet: Packet): void;
}

const ACK_PREFIX = "$JS.ACK.";
const ACK_WORDS = 9;
const NOTHING: Uint8Array = Buffer.alloc(0);

export class SimulatedServer implements Outlet {
  readonly facts: ServerFacts;
  #inWrite: (RestartOptions & { readonly stream: string }) | undefined;
  readonly clock: Clock;
  /** May be exchanged at any time. */
  faults: ServerFaults;
  readonly streams: Map<string, Stream> = new Map<string, Stream>();
  readonly #sessions = new Set<Session>();
  readonly #connections = new Set<Connection>();
  readonly #batches = new Batches();
  readonly #api: Api;

  constructor({ clock, faults, facts }: ServerOptions) {
    this.clock = clock;
    this.faults = faults ?? CALM_SERVER;
    this.facts = { version: "2.15.1", maxPayload: 1_048_576, jetstream: true, ...facts };
    const surroundings = { clock, outlet: this, version: this.facts.version };
    this.#api = new Api(this.streams, surroundings, () => this.faults);
  }

  connect(options: ConnectionOptions = {}): Connection {
    const connection = new Connection(this, options);
    this.#connections.add(connection);
    return connection;
  }

  /** Everybody is cut off, and comes back unless cut off before. Messages and what is pending survive. */
  restart({ downMs = 0, forgetAcksMs = 0 }: RestartOptions = {}): void {
    const held = [...this.#connections].filter((connection) => connection.isLinked);
    for (const connection of held) connection.cut();
    this.#sessions.clear();
    this.#batches.clear();
    const forgetSince = forgetAcksMs > 0 ? this.clock.monotonic() - forgetAcksMs : Infinity;
    for (const { consumers } of this.streams.values()) {
      for (const consumer of consumers.values()) consumer.onRestart(forgetSince);
    }
    this.clock.setTimer(downMs, () => {
      for (const connection of held) connection.restore();
    });
  }

  /** The same, in the middle of the next write to a stream that replaces something: it is stored, but what it replaces is still there. */
  restartInWrite(stream: string, options: RestartOptions): void {
    this.#inWrite = { ...options, stream };
  }

  open(session: Session): void {
    this.#sessions.add(session);
  }

  drop(session: Session): void {
    this.#sessions.delete(session);
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  /** A client published something. */
  receive(packet: Packet): void {
    const heard = this.#fanOut(packet.subject, packet);
    const taken = this.#offer(packet);
    if (heard || taken || packet.reply === "") return;
    this.send(packet.reply, { headers: writeHeaders([["Nats-Subject", packet.subject]], 503) });
  }

  hasInterest(subject: string): boolean {
    for (const { subscriptions } of this.#sessions) {
      for (const pattern of subscriptions.values()) if (matches(pattern, subject)) return true;
    }
    return false;
  }

  send(inbox: string, { subject, reply, data, headers }: Sent): void {
    this.#fanOut(inbox, { subject: subject ?? inbox, reply: reply ?? "", data: data ?? NOTHING, headers });
  }

  #fanOut(address: string, packet: Packet): boolean {
    let heard = false;
    for (const session of this.#sessions) {
      for (const [subscription, pattern] of session.subscriptions) {
        if (!matches(pattern, address)) continue;
        heard = true;
        session.deliver(subscription, packet);
      }
    }
    return heard;
  }

  #offer({ subject, reply, data, headers }: Packet): boolean {
    if (subject.startsWith(API_PREFIX)) return this.#api.handle(subject, data, reply);
    if (subject.startsWith(ACK_PREFIX)) return this.#acknowledge(subject, data, reply);
    for (const stream of this.streams.values()) {
      if (!stream.takes(subject)) continue;
      const answer = this.#publish(stream, { subject, data, headers });
      if (answer === undefined) {
        if (reply !== "") this.send(reply, {});
        return true;
      }
      if (this.#inWrite?.stream === stream.config.name && stream.replaced.length > 0 && !("error" in answer)) {
        for (const message of stream.replaced) stream.revive(message);
        this.restart(this.#inWrite);
        this.#inWrite = undefined;
        return true;
      }
      if (reply !== "") this.send(reply, { data: Buffer.from(JSON.stringify(answer)) });
      return true;
    }
    return false;
  }

  /** Undefined: it is kept aside. */
  #publish(stream: Stream, publication: Publication): object | undefined {
    const { name } = stream.config;
    try {
      const batch = this.#batches.take(stream, publication);
      if (batch === "kept aside") return undefined;
      if (batch !== undefined) return { stream: name, seq: batch.sequence, batch: batch.id, count: batch.count };
      const { subject, data, headers } = publication;
      const { sequence, duplicate } = stream.take(subject, data, headers);
      return { stream: name, seq: sequence, ...(duplicate ? { duplicate } : {}) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return { error, stream: name, seq: 0 };
    }
  }

  #acknowledge(subject: string, data: Uint8Array, reply: string): boolean {
    const words = subject.split(".");
    const [, , stream = "", name = "", , sequence, place] = words;
    const consumer = words.length === ACK_WORDS ? this.streams.get(stream)?.consumers.get(name) : undefined;
    if (consumer === undefined) return false;
    if (consumer.acknowledge({ sequence: Number(sequence), place: Number(place) }, data, reply) && reply !== "")
      this.send(reply, {});
    return true;
  }
}
