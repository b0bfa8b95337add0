import { type BatonError, InvalidInput, KeyBusy, KeyFull, QueueFull } from "../../domain/errors.ts";
import type { Mode } from "../../domain/settings.ts";
import type { Submission, SubmitResult } from "../../engine/port.ts";
import { bigints, byteas, integers, texts } from "./arrays.ts";
import { type Columns, columnsOf } from "./bodies.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue, Queues } from "./queues.ts";
import { integer, optionalText, text, texts as readTexts } from "./rows.ts";

const ACCEPTED = 0;
const DUPLICATE = 1;
const BAD_LEVEL = 2;
const KEY_IS_BUSY = 3;
const KEY_IS_FULL = 4;

const NOTHING: readonly string[] = [];

/** A submission in the words of the store. What most do not have is null. */
export interface Entry extends Columns {
  readonly queue: number;
  readonly key: string;
  readonly level: number;
  readonly id: string | null;
  readonly headers: string | null;
  readonly delay: number | null;
  readonly mode: Mode | null;
  readonly keyLimit: number;
  readonly queueLimit: number;
  readonly keep: number;
}

export function entryOf(queues: Queues, submission: Submission): Entry {
  const { queue, key, level, id, payload, headers, delayMs, mode, keyLimit, queueLimit, keepMs } = submission;
  const declared = queues.known(queue);
  return {
    queue: declared.id,
    key,
    level: declared.levels.indexOf(level),
    id: id ?? null,
    ...columnsOf(payload),
    headers: headers === undefined ? null : JSON.stringify(headers),
    delay: delayMs === 0 ? null : Math.ceil(delayMs),
    mode: mode === "fifo" ? null : mode,
    keyLimit: bounded(keyLimit),
    queueLimit: bounded(queueLimit),
    keep: bounded(Math.ceil(keepMs)),
  };
}

/** The arguments of the function that accepts items, beginning with the queues. */
export function submitArguments(entries: readonly Entry[]): readonly unknown[] {
  const column = <K extends keyof Entry>(name: K): readonly Entry[K][] => entries.map((entry) => entry[name]);
  return [
    integers(column("queue")),
    texts(column("key")),
    integers(column("level")),
    sent(texts, column("id")),
    texts(column("type")),
    texts(column("headers")),
    texts(column("text")),
    byteas(column("bytes")),
    sent(bigints, column("delay")),
    sent(texts, column("mode")),
    bigints(column("keyLimit")),
    bigints(column("queueLimit")),
    bigints(column("keep")),
  ];
}

/** Nothing is out of the ordinary, and all have the same terms: then the store deals with them as a set. */
export function isPlain(entries: readonly Entry[]): boolean {
  const [first] = entries;
  return entries.every(
    ({ queue, level, id, delay, mode, keep, keyLimit, queueLimit }) =>
      (id ?? delay ?? mode) === null &&
      keep === 0 &&
      queue === first?.queue &&
      level === first.level &&
      keyLimit === first.keyLimit &&
      queueLimit === first.queueLimit,
  );
}

/** One row of the answer. */
export function submitResult(queues: Queues, submission: Submission, row: Row): SubmitResult {
  const queue = queues.known(submission.queue);
  const code = integer(row, 1);
  if (code !== ACCEPTED && code !== DUPLICATE) return { ok: false, error: refusal(queue, submission, code) };
  return {
    ok: true,
    accepted: {
      id: text(row, 2),
      key: optionalText(row, 3) ?? submission.key,
      level: queue.levels[integer(row, 4)] ?? "",
      at: integer(row, 5),
      duplicate: code === DUPLICATE,
      replaced: row[6] === null ? NOTHING : readTexts(row, 6),
    },
  };
}

function refusal(queue: DeclaredQueue, { key, level, keyLimit, queueLimit }: Submission, code: number): BatonError {
  switch (code) {
    case BAD_LEVEL:
      return new InvalidInput("level", level, queue.levels.join(", "));
    case KEY_IS_BUSY:
      return new KeyBusy(queue.name, key);
    case KEY_IS_FULL:
      return new KeyFull(queue.name, key, keyLimit);
    default:
      return new QueueFull(queue.name, queueLimit);
  }
}

/** A limit may be Infinity. */
function bounded(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** What nobody has is not sent. */
function sent<T>(make: (values: readonly (T | null)[]) => Buffer, values: readonly (T | null)[]): Buffer | null {
  return values.every((value) => value === null) ? null : make(values);
}
