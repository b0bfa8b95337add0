/**
 * What is published while one batch of replies is worked on goes out together, as bytes that are made here. The client would check the
 * subjects again, make four pieces of every message and copy them together, and write to its socket after every turn of promises.
 * What comes after a while in which nothing was sent goes out at once.
 */
import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import type { Clock } from "../../domain/clock.ts";
import { Closed, InvalidInput } from "../../domain/errors.ts";
import type { PublishOptions } from "./wire.ts";

/** Messages are written one behind the other into pieces of this size: to allocate a few bytes for each costs more than to fill them. */
const PIECE_BYTES = 131_072;
/** So much goes out though the turn is not over: the server works on it while the rest is made. */
const AT_ONCE_BYTES = 32_768;
/** Under load turns follow each other faster than this. */
const IDLE_MS = 2;
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
/** Each unit of a text takes at most three bytes of UTF-8. */
const MOST_BYTES_PER_UNIT = 3;

/** Takes bytes that are whole messages. */
interface Writer {
  sendCommand: (bytes: Uint8Array) => void;
  flushPending: () => void;
  outMsgs: number;
  outBytes: number;
}

export class Outbox {
  readonly #connection: NatsConnection;
  readonly #clock: Clock;
  /** Undefined: a client that does not have it any more. */
  readonly #writer: Writer | undefined;
  #piece = Buffer.alloc(0);
  /** Where in the piece what is not sent yet begins and ends. */
  #begin = 0;
  #end = 0;
  #messages = 0;
  #isDue = false;
  /** By the monotonic clock. */
  #flushedAt = Number.NEGATIVE_INFINITY;

  constructor(connection: NatsConnection, clock: Clock) {
    this.#connection = connection;
    this.#clock = clock;
    this.#writer = writerOf(connection);
  }

  add(subject: string, data: Uint8Array | string, options: PublishOptions = {}): void {
    if (this.#connection.isClosed()) throw new Closed("The connection to the NATS server");
    const { reply, headers } = options;
    const length = typeof data === "string" ? Buffer.byteLength(data) : data.length;
    const size = length + (headers?.length ?? 0);
    const most = this.#connection.info?.max_payload ?? size;
    if (size > most)
      throw new InvalidInput("payload", `${size} bytes`, `at most ${most} bytes, the most this server takes`);
    if (this.#writer === undefined) {
      publish(this.#connection, subject, data, options);
      return;
    }
    const to = reply === undefined ? subject : `${subject} ${reply}`;
    const head = headers === undefined ? `PUB ${to} ${size}\r\n` : `HPUB ${to} ${headers.length} ${size}\r\n${headers}`;
    const piece = this.#room(head.length * MOST_BYTES_PER_UNIT + length + 2);
    let end = this.#end + piece.write(head, this.#end);
    if (typeof data === "string") piece.write(data, end);
    else piece.set(data, end);
    end += length;
    piece[end] = CARRIAGE_RETURN;
    piece[end + 1] = LINE_FEED;
    this.#end = end + 2;
    this.#messages += 1;
    if (this.#end - this.#begin >= AT_ONCE_BYTES || (!this.#isDue && this.#isIdle())) this.flush();
    else if (!this.#isDue) this.#flushSoon();
  }

  flush(): void {
    if (this.#writer === undefined || this.#end === this.#begin) return;
    // What was handed over is not touched again: the socket may write it later.
    const bytes = this.#piece.subarray(this.#begin, this.#end);
    this.#begin = this.#end;
    this.#writer.outMsgs += this.#messages;
    this.#writer.outBytes += bytes.length;
    this.#messages = 0;
    if (this.#connection.isClosed()) return;
    this.#flushedAt = this.#clock.monotonic();
    this.#writer.sendCommand(bytes);
    this.#writer.flushPending();
  }

  /** Nothing was sent for a while: most likely nothing else is about to be, and whoever sends this waits for it. */
  #isIdle(): boolean {
    return this.#clock.monotonic() - this.#flushedAt > IDLE_MS;
  }

  #flushSoon(): void {
    this.#isDue = true;
    setImmediate(() => {
      this.#isDue = false;
      this.flush();
    });
  }

  /** The piece, with room for so many bytes. */
  #room(bytes: number): Buffer {
    if (this.#end + bytes > this.#piece.length) {
      this.flush();
      this.#piece = Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, bytes));
      this.#begin = 0;
      this.#end = 0;
    }
    return this.#piece;
  }
}

/** It is there in every client so far, but not part of what a client promises. */
function writerOf(connection: object): Writer | undefined {
  const writer: unknown = "protocol" in connection ? connection.protocol : undefined;
  return isWriter(writer) ? writer : undefined;
}

function isWriter(writer: unknown): writer is Writer {
  return (
    typeof writer === "object" &&
    writer !== null &&
    ["sendCommand", "flushPending"].every((name) => typeof Reflect.get(writer, name) === "function") &&
    ["outMsgs", "outBytes"].every((name) => typeof Reflect.get(writer, name) === "number")
  );
}

/** The same through the client's own face. */
function publish(
  connection: NatsConnection,
  subject: string,
  data: Uint8Array | string,
  { reply, headers }: PublishOptions,
): void {
  try {
    connection.publish(subject, data, {
      ...(reply === undefined ? {} : { reply }),
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      ...(headers === undefined ? {} : { headers: new HeaderBlock(headers) as unknown as MsgHdrs }),
    });
  } catch {
    // As good as lost: whoever waits for a reply asks again.
  }
}

/** The client asks a header object for its bytes, and for nothing else. */
class HeaderBlock {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  encode(): Uint8Array {
    return Buffer.from(this.#text, "latin1");
  }
}
