/**
 * Every name that the engine uses on a server. Two kinds of streams: one per queue for what changes with every item,
 * and one that all queues share for what is remembered.
 */
import { tokenOf } from "./key-token.ts";

export class Subjects {
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix;
  }

  /** The stream that all queues share. */
  get shared(): string {
    return this.prefix;
  }

  get allShared(): string {
    return `${this.prefix}.c.>`;
  }

  queueRecord(queue: string): string {
    return `${this.prefix}.c.queue.${queue}`;
  }

  get allQueueRecords(): string {
    return `${this.prefix}.c.queue.*`;
  }

  /** What a lock or a session is kept in. */
  cell(kind: string, token: string): string {
    return `${this.prefix}.c.cell.${kind}.${token}`;
  }

  cells(kind: string): string {
    return `${this.prefix}.c.cell.${kind}.*`;
  }

  /** Outside of every stream: who is told of something hears it now or not at all. */
  told(kind: string, token: string): string {
    return `${this.prefix}.t.${kind}.${token}`;
  }

  /** The queue that a subject, or a request to the API, is about. Undefined: none; then it is what all queues share. */
  queueOf(what: string): string | undefined {
    const own = `${this.prefix}.q.`;
    if (what.startsWith(own)) return what.slice(own.length).split(".")[0];
    if (what.startsWith(`${this.prefix}.c.`)) return undefined;
    return what
      .split(".")
      .find((token) => token.startsWith(`${this.prefix}-`))
      ?.slice(this.prefix.length + 1);
  }

  /** The stream that a subject, or a request to the API, is about. */
  streamOf(what: string): string {
    const queue = this.queueOf(what);
    return queue === undefined ? this.shared : this.of(queue).stream;
  }

  of(queue: string): QueueSubjects {
    return new QueueSubjects(this.prefix, queue);
  }
}

export class QueueSubjects {
  readonly stream: string;
  /** The stream that all queues share. */
  readonly sharedStream: string;
  /** Where those who lost leases of this queue are told. */
  readonly lost: string;
  readonly queue: string;
  readonly #own: string;
  readonly #shared: string;

  constructor(prefix: string, queue: string) {
    this.queue = queue;
    // The prefix has no hyphen, so the name can be read in one way only.
    this.stream = `${prefix}-${queue}`;
    this.sharedStream = prefix;
    this.lost = `${prefix}.t.lost.${queue}`;
    this.#own = `${prefix}.q.${queue}`;
    this.#shared = `${prefix}.c`;
  }

  get all(): string {
    return `${this.#own}.>`;
  }

  /** A ready key. */
  ready(level: number, key: string): string {
    return `${this.#own}.s.${level}.0.${key}`;
  }

  readyAt(level: number): string {
    return `${this.#own}.s.${level}.>`;
  }

  readyConsumer(level: number): string {
    return `ready-${level}`;
  }

  /** A key that is not ready: it runs, is held, waits out a back-off, is paused, or has just become idle. */
  record(key: string): string {
    return `${this.#own}.s.run.0.${key}`;
  }

  get allRecords(): string {
    return `${this.#own}.s.run.*.*`;
  }

  /** Whatever says how a key stands. Every change of a key is a compare-and-swap on exactly this text. */
  state(key: string): string {
    return `${this.#own}.s.*.*.${key}`;
  }

  get allStates(): string {
    return `${this.#own}.s.>`;
  }

  waiting(level: number, key: string): string {
    return `${this.#own}.w.${level}.${key}`;
  }

  waitingOf(key: string): string {
    return `${this.#own}.w.*.${key}`;
  }

  waitingAt(level: number): string {
    return `${this.#own}.w.${level}.>`;
  }

  waitingConsumer(level: number): string {
    return `waiting-${level}`;
  }

  get allWaiting(): string {
    return `${this.#own}.w.>`;
  }

  session(id: string): string {
    return `${this.#shared}.session.${this.queue}.${id}`;
  }

  get allSessions(): string {
    return `${this.#shared}.session.${this.queue}.*`;
  }

  receipt(id: string): string {
    return `${this.#shared}.id.${this.queue}.${tokenOf(id)}`;
  }

  dead(id: string): string {
    return `${this.#shared}.dead.${this.queue}.${tokenOf(id)}`;
  }

  get allDead(): string {
    return `${this.#shared}.dead.${this.queue}.*`;
  }

  /** A delayed item, until the server publishes it to `due`. */
  later(key: string, unique: string): string {
    return `${this.#shared}.later.${this.queue}.${key}.${unique}`;
  }

  laterOf(key: string): string {
    return `${this.#shared}.later.${this.queue}.${key}.*`;
  }

  get allReceipts(): string {
    return `${this.#shared}.id.${this.queue}.*`;
  }

  get allWakes(): string {
    return `${this.#shared}.wake.${this.queue}.*`;
  }

  /** What the stream of a queue that is being deleted takes, in place of all that it took: nobody writes to it. */
  get closed(): string {
    return `${this.#own}-closed.none`;
  }

  get allLater(): string {
    return `${this.#shared}.later.${this.queue}.>`;
  }

  /** The end of a key's back-off, until the server publishes it to `due`. */
  wake(key: string): string {
    return `${this.#shared}.wake.${this.queue}.${key}`;
  }

  due(key: string): string {
    return `${this.#shared}.due.${this.queue}.${key}`;
  }

  get allDue(): string {
    return `${this.#shared}.due.${this.queue}.*`;
  }

  get dueConsumer(): string {
    return `due-${this.queue}`;
  }

  queueRecord(): string {
    return `${this.#shared}.queue.${this.queue}`;
  }
}

/** The last token of a subject: the key, or what makes it unique. */
export function lastToken(subject: string): string {
  return subject.slice(subject.lastIndexOf(".") + 1);
}
