/**
 * JetStream with as little around it as possible, to see what the server and the client library can do. Nothing of
 * Baton's is used here: it is what Baton is held against.
 */
import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";

/** Held ready in the process, so that no slot waits for the server. */
const BUFFER = 256;
const PULL_MS = 30_000;
const ACK_WAIT_MS = 30_000;
/** The subject has as many messages as it may. */
const SUBJECT_FULL = 10_077;

interface Answer {
  readonly error?: { readonly err_code?: number; readonly description?: string };
}

export class JetStream {
  readonly connection: NatsConnection;
  readonly #inbox: string;
  readonly #waiting = new Map<string, (message: Msg) => void>();
  #count = 0;

  private constructor(connection: NatsConnection, inbox: string) {
    this.connection = connection;
    this.#inbox = `${inbox}.`;
    connection.subscribe(`${inbox}.*`, {
      callback: (_, message) => {
        const token = message.subject.slice(this.#inbox.length);
        const answered = this.#waiting.get(token);
        this.#waiting.delete(token);
        answered?.(message);
      },
    });
  }

  static async open(url: string): Promise<JetStream> {
    const { connect, createInbox } = await import("@nats-io/transport-node");
    return new JetStream(await connect({ servers: url }), createInbox());
  }

  request(subject: string, data: string): Promise<Msg> {
    return new Promise((resolve) => {
      this.#count += 1;
      const token = this.#count.toString(36);
      this.#waiting.set(token, resolve);
      this.connection.publish(subject, data, { reply: this.#inbox + token });
    });
  }

  /** Resolves when the server has stored it. False: its subject has as many as it may. */
  async publish(subject: string, data: string): Promise<boolean> {
    const { error } = (await this.request(subject, data)).json<Answer>();
    if (error === undefined) return true;
    if (error.err_code === SUBJECT_FULL) return false;
    throw new Error(error.description);
  }

  async createStream(name: string, subjects: string, more: object = {}): Promise<void> {
    await this.#ask(`STREAM.CREATE.${name}`, {
      name,
      subjects: [subjects],
      retention: "workqueue",
      storage: "file",
      discard: "new",
      ...more,
    });
    await this.#ask(`CONSUMER.DURABLE.CREATE.${name}.workers`, {
      stream_name: name,
      config: {
        durable_name: "workers",
        ack_policy: "explicit",
        ack_wait: ACK_WAIT_MS * 1e6,
        max_ack_pending: BUFFER * 4,
      },
    });
  }

  /** So many at a time: each is handled, then acknowledged, and its slot is free when the server has confirmed that. */
  consume(stream: string, concurrency: number, handle: (message: Msg) => Promise<void>): () => Promise<void> {
    return new Consumer(this, stream, concurrency, handle).stop;
  }

  async #ask(what: string, request: object): Promise<void> {
    const { error } = (await this.request(`$JS.API.${what}`, JSON.stringify(request))).json<Answer>();
    if (error !== undefined) throw new Error(error.description);
  }
}

class Consumer {
  readonly #js: JetStream;
  readonly #stream: string;
  readonly #concurrency: number;
  readonly #handle: (message: Msg) => Promise<void>;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #buffer: Msg[] = [];
  readonly #running = new Set<Promise<void>>();
  /** Asked for, and not here yet. */
  #asked = 0;

  constructor(js: JetStream, stream: string, concurrency: number, handle: (message: Msg) => Promise<void>) {
    this.#js = js;
    this.#stream = stream;
    this.#concurrency = concurrency;
    this.#handle = handle;
    this.#inbox = `pull.${process.pid}.${Math.random().toString(36).slice(2)}`;
    this.#subscription = js.connection.subscribe(this.#inbox, { callback: (_, message) => this.#receive(message) });
    this.#pull();
  }

  readonly stop = async (): Promise<void> => {
    this.#subscription.unsubscribe();
    for (const message of this.#buffer.splice(0)) this.#js.connection.publish(message.reply ?? "", "-NAK");
    await Promise.all(this.#running);
    await this.#js.connection.flush();
  };

  #pull(): void {
    if (this.#subscription.isClosed()) return;
    const batch = BUFFER - this.#asked - this.#buffer.length;
    if (batch < BUFFER / 2) return;
    this.#asked += batch;
    const request = JSON.stringify({ batch, expires: PULL_MS * 1e6 });
    this.#js.connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${this.#stream}.workers`, request, { reply: this.#inbox });
  }

  #receive(message: Msg): void {
    if (message.subject === this.#inbox) {
      // A pull is over: it says how much of it was left.
      this.#asked -= Number(message.headers?.get("Nats-Pending-Messages") ?? 0);
      this.#pull();
      return;
    }
    this.#asked -= 1;
    this.#buffer.push(message);
    this.#fill();
  }

  #fill(): void {
    while (this.#running.size < this.#concurrency) {
      const message = this.#buffer.shift();
      if (message === undefined) break;
      const running = this.#handle(message).finally(() => {
        this.#running.delete(running);
        this.#fill();
      });
      this.#running.add(running);
    }
    this.#pull();
  }
}
