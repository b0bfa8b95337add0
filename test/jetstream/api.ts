/** What answers under $JS.API: finds out what is asked of which stream, and puts the answer into the server's words. */
import { isDeepStrictEqual } from "node:util";
import { createConsumer, type CreateRequest, deleteConsumer, type Surroundings } from "./consumer-api.ts";
import type { Consumer } from "./consumer.ts";
import { get, getLast } from "./direct-get.ts";
import { ApiError, badRequest, consumerNotFound, invalidJson, streamNotFound } from "./errors.ts";
import type { ServerFaults } from "./faults.ts";
import { NO_TIME } from "./formats.ts";
import { deleteMessage, describeStream, getMessage, purgeStream } from "./stream-api.ts";
import { completeStreamConfig } from "./stream-config.ts";
import { Stream } from "./stream.ts";
import { overlap } from "./subjects.ts";

export const API_PREFIX = "$JS.API.";

const NAMES_PAGE = 1_024;
const LIST_PAGE = 256;

/** What the answer to a failed request says besides the error. */
const ON_ERROR: Readonly<Record<string, object>> = {
  stream_info: { total: 0, offset: 0, limit: 0 },
  stream_purge: { purged: 0 },
  consumer_names: { total: 0, offset: 0, limit: 0, consumers: [] },
  consumer_list: { total: 0, offset: 0, limit: 0, consumers: [] },
  consumer_pause: { paused: false, pause_until: NO_TIME },
};

type Body = Readonly<Record<string, unknown>>;

export class Api {
  readonly #streams: Map<string, Stream>;
  readonly #surroundings: Surroundings;
  readonly #faults: () => ServerFaults;

  constructor(streams: Map<string, Stream>, surroundings: Surroundings, faults: () => ServerFaults) {
    this.#streams = streams;
    this.#surroundings = surroundings;
    this.#faults = faults;
  }

  /** False when nobody listens there. */
  handle(subject: string, data: Uint8Array, reply: string): boolean {
    const words = subject.slice(API_PREFIX.length).split(".");
    const [kind = "", what = "", name = ""] = words;
    if (kind === "DIRECT" && what === "GET") return this.#direct(name, words.slice(3).join("."), data, reply);
    if (kind === "CONSUMER" && what === "MSG") {
      const [stream = "", consumer = ""] = words.slice(3);
      const found = this.#streams.get(stream)?.consumers.get(consumer);
      found?.pull(data, reply);
      return found !== undefined;
    }
    const type = typeOf(words);
    if (type !== undefined) this.#answer(reply, type, () => this.#perform(type, words, data));
    return true;
  }

  #answer(reply: string, type: string, perform: () => object): void {
    const full = `io.nats.jetstream.api.v1.${type}_response`;
    let body: object;
    try {
      body = { type: full, ...perform() };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      body = { type: full, error, ...ON_ERROR[type] };
    }
    if (reply !== "") this.#surroundings.outlet.send(reply, { data: Buffer.from(JSON.stringify(body)) });
  }

  #perform(type: string, words: readonly string[], data: Uint8Array): object {
    const [, , third = "", fourth = ""] = words;
    switch (type) {
      case "account_info":
        return this.#accountInfo();
      case "stream_names":
        return this.#names(readBody(data));
      case "stream_list":
        return paged(
          "streams",
          LIST_PAGE,
          [...this.#streams.values()].toSorted(byName).map((one) => this.#describe(one)),
        );
      case "stream_create":
        return this.#create(third, readBody(data));
      case "stream_update":
        return this.#update(third, readBody(data));
      case "stream_delete":
        return this.#delete(third);
      case "stream_info":
        return describeStream(this.#stream(third), this.#now(), readBody(data));
      case "stream_purge":
        return purgeStream(this.#stream(third), readBody(data));
      case "stream_msg_delete":
        return deleteMessage(this.#stream(fourth), readBody(data));
      case "stream_msg_get":
        return getMessage(this.#stream(fourth), readBody(data));
      case "consumer_create":
        return this.#createConsumer(words, readBody(data));
      case "consumer_info":
        return this.#consumer(third, fourth).info();
      case "consumer_delete":
        if (!deleteConsumer(this.#stream(third), fourth)) throw consumerNotFound();
        return { success: true };
      case "consumer_names":
        return paged("consumers", NAMES_PAGE, [...this.#stream(third).consumers.keys()].toSorted());
      case "consumer_list":
        return paged(
          "consumers",
          LIST_PAGE,
          [...this.#stream(third).consumers.values()].map((one) => one.info()),
        );
      case "consumer_pause": {
        const consumer = this.#consumer(third, fourth);
        consumer.pauseUntil(readBody(data)["pause_until"] as string | undefined);
        return consumer.pauseInfo();
      }
      default:
        throw badRequest();
    }
  }

  #direct(name: string, subject: string, data: Uint8Array, reply: string): boolean {
    const stream = this.#streams.get(name);
    if (stream?.config.allow_direct !== true) return false;
    const faults = this.#faults();
    const changes = Math.max(faults.changesBehind(name), stream.messages.changesWithin(faults.msBehind(name)));
    const messages = stream.messages.behind(changes);
    const sent = subject === "" ? get(name, messages, data) : getLast(name, messages, subject, data);
    if (reply !== "") for (const each of sent) this.#surroundings.outlet.send(reply, each);
    return true;
  }

  #accountInfo(): object {
    const streams = [...this.#streams.values()];
    const sum = (count: (stream: Stream) => number): number => streams.reduce((total, each) => total + count(each), 0);
    return {
      memory: 0,
      storage: sum(({ messages }) => messages.bytes),
      streams: streams.length,
      consumers: sum(({ consumers }) => consumers.size),
      limits: { max_memory: -1, max_storage: -1, max_streams: -1, max_consumers: -1, max_ack_pending: -1 },
      api: { level: 5, total: 0, errors: 0 },
    };
  }

  #names({ subject }: { readonly subject?: string }): object {
    const streams = [...this.#streams.values()].toSorted(byName);
    const found = streams.filter(({ config }) => config.subjects.some((own) => overlap(own, subject ?? own)));
    const names = found.map(({ config }) => config.name);
    return { ...paged("streams", NAMES_PAGE, names), streams: names.length === 0 ? null : names };
  }

  #create(name: string, body: Body): object {
    if (body["name"] !== name) throw new ApiError(400, 10056, "stream name in subject does not match request");
    const config = completeStreamConfig(body, this.#surroundings.version);
    const existing = this.#streams.get(name);
    if (existing !== undefined && !isDeepStrictEqual(existing.config, config)) {
      throw new ApiError(400, 10058, "stream name already in use with a different configuration");
    }
    const stream = existing ?? new Stream(config, this.#surroundings.clock, this.#faults);
    this.#checkSubjects(name, config.subjects);
    this.#streams.set(name, stream);
    return { ...this.#describe(stream), did_create: true };
  }

  #update(name: string, body: Body): object {
    const stream = this.#stream(name);
    const config = completeStreamConfig(body, this.#surroundings.version);
    const refuse = (text: string): ApiError => new ApiError(500, 10052, text);
    if (stream.config.allow_msg_ttl && !config.allow_msg_ttl) throw refuse("message TTL status can not be disabled");
    this.#checkSubjects(name, config.subjects);
    stream.config = config;
    return this.#describe(stream);
  }

  #delete(name: string): object {
    this.#stream(name).close();
    this.#streams.delete(name);
    return { success: true };
  }

  #checkSubjects(name: string, subjects: readonly string[]): void {
    for (const other of this.#streams.values()) {
      if (other.config.name === name) continue;
      if (other.config.subjects.some((theirs) => subjects.some((own) => overlap(theirs, own)))) {
        throw new ApiError(400, 10065, "subjects overlap with an existing stream");
      }
    }
  }

  #createConsumer(words: readonly string[], request: CreateRequest): object {
    const isDurable = words[1] === "DURABLE";
    const [stream = "", name = "", ...filter] = words.slice(isDurable ? 3 : 2);
    return createConsumer(this.#stream(stream), name, filter.join("."), request, this.#surroundings);
  }

  #stream(name: string): Stream {
    const stream = this.#streams.get(name);
    if (stream === undefined) throw streamNotFound();
    return stream;
  }

  #consumer(stream: string, name: string): Consumer {
    const consumer = this.#stream(stream).consumers.get(name);
    if (consumer === undefined) throw consumerNotFound();
    return consumer;
  }

  #describe(stream: Stream): object {
    const { total: _total, offset: _offset, limit: _limit, ...rest } = describeStream(stream, this.#now()) as Body;
    return rest;
  }

  #now(): number {
    return this.#surroundings.clock.wall();
  }
}

function typeOf(words: readonly string[]): string | undefined {
  const [kind = "", what = "", third = ""] = words;
  if (kind === "INFO" && words.length === 1) return "account_info";
  if (kind === "STREAM" && what === "MSG") return `stream_msg_${third.toLowerCase()}`;
  if (kind === "CONSUMER" && what === "DURABLE") return "consumer_create";
  const isKnown =
    kind === "STREAM" ? /^(CREATE|UPDATE|DELETE|INFO|NAMES|LIST|PURGE)$/ : /^(CREATE|INFO|DELETE|NAMES|LIST|PAUSE)$/;
  if ((kind !== "STREAM" && kind !== "CONSUMER") || !isKnown.test(what)) return undefined;
  return `${kind}_${what}`.toLowerCase();
}

function readBody(data: Uint8Array): Body {
  if (data.length === 0) return {};
  try {
    return JSON.parse(Buffer.from(data).toString()) as Body;
  } catch {
    throw invalidJson();
  }
}

function paged(key: string, limit: number, entries: readonly unknown[]): object {
  return { total: entries.length, offset: 0, limit, [key]: entries };
}

function byName(one: Stream, other: Stream): number {
  return one.config.name < other.config.name ? -1 : 1;
}
