import type { ClientBase, QueryArrayConfig } from "pg";
import { Closed, QueueMissing } from "../../domain/errors.ts";
import { pg } from "./client-library.ts";
import {
  describeConnectFailure,
  describeFailure,
  isLostConnection,
  isWorthRepeating,
  queueThatIsGone,
} from "./failure.ts";

/** Where connections come from: a URL of ours, or the application's own pool. */
export interface Connections {
  /** For people: host, port and database, without a password. */
  readonly where: string;
  /** There may be more of them than the store cannot do without. */
  readonly areOurs: boolean;
  /** How long a statement may go without an answer, if its connections do not know it themselves. */
  readonly silentMs?: number;
  /** @param signal calls an attempt off: it rejects, and leaves nothing open. What comes of a pool comes later, and must be given back. */
  connect(signal?: AbortSignal): Promise<Connection>;
}

export interface Connection {
  readonly client: ClientBase;
  /** Gives it back; `broken` when it is of no use to anybody else. */
  release(broken: boolean): void;
}

/** `pg` takes it with a statement too; its types do not say so. */
interface Limited {
  query_timeout?: number;
}

export type Row = readonly unknown[];

const MOST_REPEATS = 10;

/** Numbers of ours stay below 2^53; PostgreSQL's default is to give them as texts. */
const types: NonNullable<QueryArrayConfig["types"]> = {
  getTypeParser(oid, format) {
    const { types: builtin } = pg();
    // oxlint-disable-next-line typescript/no-unsafe-return -- a parser may return anything, and so says its type
    return oid === builtin.builtins.INT8 ? Number : builtin.getTypeParser(oid, format);
  },
};

/** One connection that statements are sent over; a new one when it is lost. */
export class Link {
  readonly schema: string;
  readonly #connections: Connections;
  readonly #prepare: (client: ClientBase) => Promise<void>;
  #connection: Connection | undefined;
  #opening: Promise<Connection> | undefined;
  readonly #closing = new AbortController();
  /** What the server says beside its answers, when a statement is over, and when nobody knows what became of one. */
  onNotice: (message: string, severity?: string) => void = () => undefined;
  onUnknown: () => void = () => undefined;
  /** What to tell whoever asked something of a queue that was deleted. */
  onQueueGone: (queue: number) => Error = (queue) => new QueueMissing(`number ${queue}`);
  onDone: () => void = () => undefined;

  constructor(connections: Connections, schema: string, prepare: (client: ClientBase) => Promise<void>) {
    this.schema = schema;
    this.#connections = connections;
    this.#prepare = prepare;
  }

  get where(): string {
    return this.#connections.where;
  }

  /** A function of the schema. */
  async call(name: string, ...values: readonly unknown[]): Promise<readonly Row[]> {
    const places = values.map((_, index) => `$${index + 1}`).join(", ");
    return await this.query(`baton_${name}`, `SELECT * FROM ${this.schema}.${name}(${places})`, values);
  }

  /** Prepared under its name once per connection. Each is a transaction of its own. */
  async query(name: string, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    for (let repeats = 0; ; repeats += 1) {
      const connection = await this.open();
      try {
        const statement: QueryArrayConfig & Limited = { name, text, values: [...values], rowMode: "array", types };
        if (this.#connections.silentMs !== undefined) statement.query_timeout = this.#connections.silentMs;
        const result = await connection.client.query<unknown[]>(statement);
        this.onDone();
        return result.rows;
      } catch (error) {
        if (isLostConnection(error)) {
          this.#drop(connection);
          this.onUnknown();
        }
        const gone = queueThatIsGone(error);
        if (gone !== undefined) throw this.onQueueGone(gone);
        if (isWorthRepeating(error) && repeats < MOST_REPEATS) continue;
        throw describeFailure(error, this.where);
      }
    }
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  get isOpen(): boolean {
    return this.#connection !== undefined;
  }

  async open(): Promise<Connection> {
    if (this.#closed) throw new Closed();
    if (this.#connection !== undefined) return this.#connection;
    this.#opening ??= this.#connect().finally(() => (this.#opening = undefined));
    return await this.#opening;
  }

  async #connect(): Promise<Connection> {
    let made: Connection | undefined;
    const { signal } = this.#closing;
    // A server that stands still while the connection is prepared would keep the process alive for a while.
    const callOff = (): void => made?.release(true);
    signal.addEventListener("abort", callOff, { once: true });
    try {
      const connection = (made = await this.#connections.connect(signal));
      // An idle connection that ends is noticed here; the next statement makes a new one.
      made.client.on("error", () => this.#drop(connection));
      made.client.on("notice", ({ message, severity }) => this.onNotice(message ?? "", severity));
      await this.#prepare(made.client);
    } catch (error) {
      made?.release(true);
      if (this.#closed) throw new Closed();
      throw describeConnectFailure(error, this.where);
    } finally {
      signal.removeEventListener("abort", callOff);
    }
    if (this.#closed) {
      made.release(true);
      throw new Closed();
    }
    this.#connection = made;
    return made;
  }

  close(): void {
    this.#closing.abort();
    const connection = this.#connection;
    this.#connection = undefined;
    // Its settings and prepared statements are ours: nobody else should get it.
    connection?.release(true);
  }

  /** One that was dropped before may still have something to say: it takes no other with it. */
  #drop(connection: Connection): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    connection.release(true);
  }
}
