/** The JetStream API, as far as the engine uses it. Statuses and error codes end here; above are values and errors. */
import { type Clock, pause, type Timer } from "../../domain/clock.ts";
import { asError } from "./as-error.ts";
import {
  ApiError,
  type ApiReply,
  batchResultOf,
  CONSUMER_EXISTS,
  GONE,
  type MessageLine,
  NO_CONSUMER,
  NO_MESSAGE,
  NO_STREAM,
  NOT_NOW,
  type PutResult,
  putResultOf,
  STREAM_EXISTS,
  type Stored,
  storedOf,
  unanswered,
} from "./api-replies.ts";
import type { ConsumerConfig, ConsumerInfo, StreamConfig, StreamInfo } from "./api-types.ts";
import { type PutOptions, putHeaders } from "./headers.ts";
import { ownJson, textOfBytes } from "./own-json.ts";
import { Lost, type Message, type Requests, SwitchedOff, Unserved } from "./requests.ts";
import type { Delivery, ServerFacts } from "./wire.ts";

/** Is told a subject, or what was asked of the API, that nobody serves. True: it was gone, and has been made anew. */
export type Restore = (what: string) => Promise<boolean>;

/** Of the server itself, not of another one that it passes requests on to. */
const OWN_API = "$JS.API";
/** Requests that can be repeated are, for so long: a cluster that has lost a leader needs four to ten seconds to choose another one… */
const PATIENCE_MS = 15_000;
/** …and at least so often. */
const LEAST_TRIES = 8;
/** Between two tries: twice as long each time, and never so long that whoever waits would wait for this rather than for the server. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 250;
/** Far longer than a leader takes to answer. */
const AGAIN_MS = 400;
/** A server that says so often, one after the other, that it has no JetStream is not just starting. */
const OFF_TRIES = 3;
/** Messages that are asked for together, the bytes of their names, and how much comes at a time. */
const PAGE = 256;
const PAGE_BYTES = 65_536;
const PART_BYTES = 1_048_576;
const FEW = 2;

interface Batch {
  readonly found: readonly Stored[];
  /** False: the server has cut it short. */
  readonly isAll: boolean;
}

export class JetStream {
  readonly #requests: Requests;
  readonly #api: string;
  readonly #clock: Clock;
  /** Hears of streams that have replicas. */
  readonly #replicates: (stream: string) => void;
  readonly #repeats: boolean;
  /** Streams whose every read must be answered by their leader: a follower may be behind. */
  readonly #replicated = new Set<string>();
  readonly #homes = new Map<string, string>();
  readonly #batching = new Set<string>();
  /** The server that the connection leads to now. */
  readonly #server: () => ServerFacts;
  #restore: Restore = () => Promise.resolve(false);
  #highest = 0;
  #looking: Promise<boolean> | undefined;

  constructor(parts: {
    readonly requests: Requests;
    readonly api: string;
    readonly clock: Clock;
    readonly server: () => ServerFacts;
    readonly replicates?: (stream: string) => void;
    /** False: nothing is worth a second try. */
    readonly repeats?: boolean;
  }) {
    this.#server = parts.server;
    this.#requests = parts.requests;
    this.#api = parts.api;
    this.#clock = parts.clock;
    this.#replicates = parts.replicates ?? ((): void => undefined);
    this.#repeats = parts.repeats ?? true;
  }

  /** Who makes anew what somebody deleted. */
  restoreBy(restore: Restore): void {
    this.#restore = restore;
  }

  /** For writes that are tried once: waits until what nobody served is served again, or throws why it will not be. False: nothing was in its way. */
  async restored({ subject }: Unserved): Promise<boolean> {
    return await this.#restore(subject);
  }

  /** The highest sequence that was given to a write of this process, of all streams. */
  get highest(): number {
    return this.#highest;
  }

  readByLeader(stream: string): void {
    this.#replicated.add(stream);
    this.#replicates(stream);
  }

  /** Where the only copy of a stream lives. A server that stands alone does not say: then it is there. */
  livesAt(stream: string, leader: string | undefined): void {
    const server = this.#server();
    const home = leader ?? (server.alone === true && this.#api === OWN_API ? server.name : undefined);
    if (home !== undefined) this.#homes.set(stream, home);
  }

  /** Whether the connection leads straight to the only server that has the stream. */
  isNear(stream: string): boolean {
    const home = this.#homes.get(stream);
    return home !== undefined && home === this.#server().name;
  }

  /** Whether the stream takes several writes as one. */
  batchesFor(stream: string, areTaken: boolean): void {
    if (areTaken) this.#batching.add(stream);
    else this.#batching.delete(stream);
  }

  takesBatches(stream: string): boolean {
    return this.#batching.has(stream);
  }

  isReplicated(stream: string): boolean {
    return this.#replicated.has(stream);
  }

  /** One try. Throws `Lost` when no reply came: the write may or may not have happened. */
  put(subject: string, data: Uint8Array | string, options: PutOptions = {}): Promise<PutResult> {
    return new Promise((resolve, reject) => {
      this.putThen(subject, data, options, resolve, reject);
    });
  }

  /** The same without a promise. */
  putThen(
    subject: string,
    data: Uint8Array | string,
    options: PutOptions,
    resolve: (result: PutResult) => void,
    reject: (error: Error) => void,
  ): void {
    const answer = (reply: Delivery): void => {
      try {
        const result = putResultOf(subject, reply);
        if (!result.refused && result.sequence > this.#highest) this.#highest = result.sequence;
        resolve(result);
      } catch (error) {
        reject(asError(error));
      }
    };
    this.#requests.sendThen(subject, data, putHeaders(options), answer, reject);
  }

  /**
   * Several writes to one stream, stored together or not at all, by an id of their own. Resolves to the sequence of the first, the others follow it; to undefined if
   * nothing was stored. One try: rejects with `Lost` when it is not known what became of any.
   */
  putTogether(
    id: string,
    puts: readonly { readonly subject: string; readonly data: Uint8Array | string; readonly options: PutOptions }[],
    resolve: (first: number | undefined) => void,
    reject: (error: Error) => void,
  ): void {
    const messages = puts.map(({ subject, data, options }, place): Message => {
      const batch = { id, number: place + 1, isLast: place === puts.length - 1 };
      return { subject, data, headers: putHeaders(options, batch) };
    });
    const last = messages.pop();
    if (last === undefined) return;
    const answer = (reply: Delivery): void => {
      const sequence = batchResultOf(puts.length, reply);
      if (sequence === "unknown") return reject(new Lost(last.subject));
      if (sequence !== undefined && sequence > this.#highest) this.#highest = sequence;
      resolve(sequence === undefined ? undefined : sequence - puts.length + 1);
    };
    this.#requests.sendAll(messages, last, answer, reject);
  }

  /** A write that may be repeated without harm. */
  async putSurely(subject: string, data: Uint8Array | string, options: PutOptions = {}): Promise<PutResult> {
    return await this.again(() => this.put(subject, data, options));
  }

  /**
   * Repeats what can be repeated, while replies are lost. Where a stream is gone, it is made anew. Where the server has no JetStream any
   * more, there is no use in asking on.
   */
  async again<T>(ask: () => Promise<T>): Promise<T> {
    const begun = this.#clock.monotonic();
    // What nobody served was not done; of what was lost before that one cannot tell.
    let isUncertain = false;
    for (let tries = 1, offs = 0; ; tries += 1) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof Lost) || !this.#repeats || this.#requests.isClosed) throw error;
        isUncertain ||= !(error instanceof Unserved);
        const isOver = tries >= LEAST_TRIES && this.#clock.monotonic() - begun >= PATIENCE_MS;
        if (error instanceof Unserved) {
          if (!isOver && (await this.#restore(error.subject))) continue;
          offs = (await this.#isOff()) ? offs + 1 : 0;
        } else offs = 0;
        if (isOver || offs >= OFF_TRIES)
          throw isUncertain || !(error instanceof Unserved) ? error : new SwitchedOff(error.subject);
        await pause(this.#clock, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)));
      }
    }
  }

  /**
   * Nobody serves a stream of the only server there is, and its API does not answer either: a server whose JetStream is switched off while it
   * runs is silent there. In a cluster a stream may just be choosing its leader.
   */
  #isOff(): Promise<boolean> {
    if (this.#server().alone !== true) return Promise.resolve(false);
    this.#looking ??= this.#requests
      .send(`${this.#api}.INFO`, "")
      .then(({ status }) => status !== 0)
      .catch(() => true)
      .finally(() => (this.#looking = undefined));
    const late = pause(this.#clock, LONGEST_PAUSE_MS).then(() => true);
    return Promise.race([this.#looking, late]);
  }

  /** The last message on a subject, or on any that a filter matches, as the stream's leader knows it. */
  async last(stream: string, subject: string): Promise<Stored | undefined> {
    return await this.#get(stream, { last_by_subj: subject });
  }

  async at(stream: string, sequence: number): Promise<Stored | undefined> {
    return await this.#get(stream, { seq: sequence });
  }

  /** The first message on a subject at or behind a sequence. */
  async next(stream: string, subject: string, sequence: number): Promise<Stored | undefined> {
    return await this.#get(stream, { seq: sequence, next_by_subj: subject });
  }

  /** The first few messages on a subject at or behind a sequence. */
  async nextFew(stream: string, subject: string, sequence: number, count: number): Promise<readonly Stored[]> {
    // The server counts what follows each message of a batch: few are cheaper one by one.
    if (this.#replicated.has(stream) || count <= FEW) {
      const found: Stored[] = [];
      for (let from = sequence; found.length < count;) {
        const stored = await this.next(stream, subject, from);
        if (stored === undefined) break;
        found.push(stored);
        from = stored.sequence + 1;
      }
      return found;
    }
    return (await this.#batch(stream, { seq: sequence, next_by_subj: subject, batch: count })).found;
  }

  /** Every last message of the subjects that a filter matches. */
  async lastOfEach(stream: string, filter: string): Promise<readonly Stored[]> {
    const found: Stored[] = [];
    for await (const page of this.pagesOfLast(stream, filter)) found.push(...page);
    return found;
  }

  /** The same page by page, for those that need not be in memory together. The next is on its way while one is worked on. */
  async *pagesOfLast(stream: string, filter: string, size: number = PAGE): AsyncGenerator<readonly Stored[]> {
    const pages = pagesOf([...(await this.subjects(stream, filter)).keys()], size);
    const ask = (): Promise<readonly Stored[]> | undefined => {
      const names = pages.next().value;
      const asked = names === undefined ? undefined : this.lastOfAll(stream, names);
      // Heard of when its turn comes, or not at all.
      asked?.catch(() => undefined);
      return asked;
    };
    for (let asked = ask(); asked !== undefined;) {
      const page = await asked;
      asked = ask();
      yield page;
    }
  }

  /** The last messages of some subjects, as many as one answer holds. One try. */
  async lastOfSome(stream: string, names: readonly string[]): Promise<readonly Stored[]> {
    const request = { multi_last: names.slice(0, PAGE), batch: PAGE, max_bytes: PART_BYTES };
    return (await this.#batchOnce(stream, request)).found;
  }

  /** The last messages of some subjects, all of them. */
  async lastOfAll(stream: string, names: readonly string[]): Promise<readonly Stored[]> {
    if (this.#replicated.has(stream)) {
      const messages = await Promise.all(names.map((name) => this.last(stream, name)));
      return messages.filter((message) => message !== undefined);
    }
    const all: Stored[] = [];
    const request = { multi_last: names, batch: names.length, max_bytes: PART_BYTES };
    for (;;) {
      const last = all.at(-1);
      const { found, isAll } = await this.#batch(
        stream,
        last === undefined ? request : { ...request, seq: last.sequence + 1 },
      );
      all.push(...found);
      if (found.length === 0 || all.length >= names.length) return all;
      // Not every server counts what is left in the same way.
      if (isAll && bytesOf(found) < PART_BYTES / 2) return all;
    }
  }

  /** Removes one message. False: it was gone. */
  async remove(stream: string, sequence: number): Promise<boolean> {
    return await this.again(async () => {
      const answer = await this.#ask(`STREAM.MSG.DELETE.${stream}`, { seq: sequence, no_erase: true }, GONE);
      return answer !== undefined;
    });
  }

  /** Removes all messages on a subject that come before a sequence. */
  async purge(stream: string, filter: string, before?: number): Promise<number> {
    const request = before === undefined ? { filter } : { filter, seq: before };
    const answer = await this.again(() =>
      this.#ask<{ purged: number }>(`STREAM.PURGE.${stream}`, request, new Set([NO_STREAM])),
    );
    return answer?.purged ?? 0;
  }

  /** How many messages there are on each subject that a filter matches. */
  async subjects(stream: string, filter: string): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (;;) {
      const info = await this.again(() =>
        this.#ask<StreamInfo>(`STREAM.INFO.${stream}`, { subjects_filter: filter, offset: found.size }),
      );
      const page = Object.entries(info?.state.subjects ?? {});
      for (const [subject, count] of page) found.set(subject, count);
      if (page.length === 0 || found.size >= (info?.total ?? 0)) return found;
    }
  }

  async streamInfo(stream: string): Promise<StreamInfo | undefined> {
    return await this.again(() => this.streamInfoOnce(stream));
  }

  /** One try. */
  async streamInfoOnce(stream: string): Promise<StreamInfo | undefined> {
    return await this.#ask<StreamInfo>(`STREAM.INFO.${stream}`, {}, new Set([NO_STREAM]));
  }

  /** Undefined: a stream of that name is there already, made otherwise. */
  async createStream(config: StreamConfig): Promise<StreamInfo | undefined> {
    return await this.again(() =>
      this.#ask<StreamInfo>(`STREAM.CREATE.${config.name}`, config, new Set([STREAM_EXISTS])),
    );
  }

  /** One try. */
  async updateStreamOnce(config: StreamConfig): Promise<void> {
    await this.#ask(`STREAM.UPDATE.${config.name}`, config, new Set([NO_STREAM]));
  }

  /** One try. */
  async deleteStreamOnce(stream: string): Promise<void> {
    await this.#ask(`STREAM.DELETE.${stream}`, {}, new Set([NO_STREAM]));
  }

  /** One try. */
  async deleteConsumerOnce(stream: string, consumer: string): Promise<void> {
    await this.#ask(`CONSUMER.DELETE.${stream}.${consumer}`, {}, new Set([NO_CONSUMER, NO_STREAM]));
  }

  /** Undefined: one of that name is there already, made otherwise, or there is no such stream. */
  async createConsumer(stream: string, config: ConsumerConfig): Promise<ConsumerInfo | undefined> {
    // Without the action, one that exists would be changed.
    const request = { stream_name: stream, config, action: "create" };
    return await this.again(() =>
      this.#ask<ConsumerInfo>(
        `CONSUMER.DURABLE.CREATE.${stream}.${config.durable_name}`,
        request,
        new Set([CONSUMER_EXISTS, NO_STREAM]),
      ),
    );
  }

  /** Undefined: there is none, or no such stream. */
  async consumerInfo(stream: string, consumer: string): Promise<ConsumerInfo | undefined> {
    return await this.again(() =>
      this.#ask<ConsumerInfo>(`CONSUMER.INFO.${stream}.${consumer}`, {}, new Set([NO_CONSUMER, NO_STREAM])),
    );
  }

  /** False: there is no such consumer. */
  async pauseConsumer(stream: string, consumer: string, until: number): Promise<boolean> {
    const request = { pause_until: new Date(until).toISOString() };
    const paused = await this.again(() =>
      this.#ask(`CONSUMER.PAUSE.${stream}.${consumer}`, request, new Set([NO_CONSUMER])),
    );
    return paused !== undefined;
  }

  /** One try. Throws `Lost` unless the server said that it has the acknowledgement, or that the delivery is back. */
  async confirm(reply: string, what: "+ACK" | "-NAK" = "+ACK"): Promise<void> {
    const { status } = await this.#requests.send(reply, what);
    if (status !== 0) throw new Lost(reply);
  }

  /**
   * Acknowledges, and waits until the message is gone. Where no consumer answers, it is removed without one: a consumer that was made anew
   * says nothing to the acknowledgement of a delivery that it has not repeated yet.
   */
  async acknowledge(reply: string, stream: string, sequence: number): Promise<void> {
    try {
      await this.confirm(reply);
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      await this.remove(stream, sequence);
    }
  }

  nextMessages(stream: string, consumer: string): string {
    return `${this.#api}.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
  }

  async #get(stream: string, request: object): Promise<Stored | undefined> {
    return await this.again(() =>
      this.#replicated.has(stream) ? this.#getOfLeader(stream, request) : this.#getDirect(stream, request),
    );
  }

  async #getDirect(stream: string, request: object): Promise<Stored | undefined> {
    const subject = `${this.#api}.DIRECT.GET.${stream}`;
    const reply = await this.#requests.send(subject, JSON.stringify(request));
    if (reply.status === 404) return undefined;
    if (reply.status === 503) throw new Unserved(`DIRECT.GET.${stream}`);
    if (reply.status !== 0) throw unanswered(subject, reply);
    return storedOf(reply);
  }

  async #getOfLeader(stream: string, request: object): Promise<Stored | undefined> {
    const what = `STREAM.MSG.GET.${stream}`;
    const answer = await this.#ask<{ message: MessageLine }>(what, request, NO_MESSAGE, true);
    if (answer === undefined) return undefined;
    const { subject, seq, time, data } = answer.message;
    return { subject, sequence: seq, at: Date.parse(time), data: Buffer.from(data ?? "", "base64") };
  }

  async #batch(stream: string, request: object): Promise<Batch> {
    return await this.again(() => this.#batchOnce(stream, request));
  }

  async #batchOnce(stream: string, request: object): Promise<Batch> {
    const subject = `${this.#api}.DIRECT.GET.${stream}`;
    const found: Stored[] = [];
    let whole = true;
    const follows = (reply: Delivery): boolean =>
      Number(reply.header("Nats-Last-Sequence") ?? 0) === (found.at(-1)?.sequence ?? 0);
    const end = await this.#requests.collect(subject, JSON.stringify(request), (reply) => {
      if (reply.status !== 0) return false;
      // Each names the one before it: a gap would be an item that nobody sees.
      whole &&= follows(reply);
      found.push(storedOf(reply));
      return true;
    });
    if (end.status === 503) throw new Unserved(`DIRECT.GET.${stream}`);
    if (end.status !== 204 && end.status !== 404) throw unanswered(subject, end);
    // One that vanished while the server was at it ends its answer.
    const isBroken = end.status === 404 ? found.length > 0 : !follows(end);
    if (!whole || isBroken) throw new Lost(subject);
    return { found, isAll: Number(end.header("Nats-Num-Pending") ?? 0) === 0 };
  }

  /**
   * Undefined: the server said so with one of the codes that mean "there is none".
   *
   * @param isRepeated to be asked twice does no harm
   */
  async #ask<T>(
    what: string,
    request: object,
    none: ReadonlySet<number> = new Set(),
    isRepeated = false,
  ): Promise<T | undefined> {
    const subject = `${this.#api}.${what}`;
    const body = JSON.stringify(request);
    const reply = await (isRepeated ? this.#sendPatiently(subject, body) : this.#requests.send(subject, body));
    if (reply.status !== 0) throw unanswered(subject, reply);
    const answer = ownJson<T & ApiReply>(textOfBytes(reply.data));
    if (answer.error === undefined) return answer;
    const number = answer.error.err_code ?? answer.error.code;
    if (none.has(number)) return undefined;
    if (number === NO_STREAM) throw new Unserved(what);
    if (NOT_NOW.has(number)) throw new Lost(subject);
    throw new ApiError(subject, number, answer.error.description ?? "");
  }

  /** Servers that do not lead a stream say nothing, nor does one that is about to lead it: it is asked again before the question is given up. */
  #sendPatiently(subject: string, body: string): Promise<Delivery> {
    return new Promise((resolve, reject) => {
      const ask = (): void => {
        timer = this.#clock.setTimer(AGAIN_MS, ask);
        this.#requests.send(subject, body).then(
          (reply) => {
            timer.cancel();
            resolve(reply);
          },
          (error: unknown) => {
            timer.cancel();
            reject(asError(error));
          },
        );
      };
      let timer: Timer;
      ask();
    });
  }
}

function bytesOf(found: readonly Stored[]): number {
  return found.reduce((total, { data }) => total + data.length, 0);
}

/** So many at a time, and not too many bytes of them. */
function* pagesOf(names: readonly string[], size: number): Generator<readonly string[], undefined> {
  for (let from = 0; from < names.length;) {
    const page: string[] = [];
    for (let bytes = 0; page.length < size && bytes < PAGE_BYTES && from < names.length; from += 1) {
      const name = names[from] ?? "";
      bytes += name.length;
      page.push(name);
    }
    yield page;
  }
  return undefined;
}
