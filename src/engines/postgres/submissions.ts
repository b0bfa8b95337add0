import { type BatonError, InvalidInput, KeyBusy, KeyFull, QueueFull } from "../../domain/errors.ts";
import type { Submission, SubmitResult } from "../../engine/port.ts";
import { bigints, byteas, integers, texts } from "./arrays.ts";
import { columnsOf } from "./bodies.ts";
import type { Row } from "./link.ts";
import type { DeclaredQueue, Queues } from "./queues.ts";
import { integer, optionalText, text, texts as readTexts } from "./rows.ts";

const ACCEPTED = 0;
const DUPLICATE = 1;
const BAD_LEVEL = 2;
const KEY_IS_BUSY = 3;
const KEY_IS_FULL = 4;

const NOTHING: readonly string[] = [];

/** The arguments of the function that accepts items, beginning with the queues. */
export function submitArguments(queues: Queues, submissions: readonly Submission[]): readonly unknown[] {
  const declared = submissions.map(({ queue }) => queues.known(queue));
  const columns = submissions.map(({ payload }) => columnsOf(payload));
  return [
    integers(declared.map(({ id }) => id)),
    texts(submissions.map(({ key }) => key)),
    integers(submissions.map(({ level }, index) => declared[index]?.levels.indexOf(level) ?? -1)),
    // What most do not have is not sent, and tells the store that nothing is out of the ordinary.
    unless(
      submissions.every(({ id }) => id === undefined),
      () => texts(submissions.map(({ id }) => id ?? null)),
    ),
    texts(columns.map(({ type }) => type)),
    texts(submissions.map(({ headers }) => (headers === undefined ? null : JSON.stringify(headers)))),
    texts(columns.map((one) => one.text)),
    byteas(columns.map(({ bytes }) => bytes)),
    unless(
      submissions.every(({ delayMs }) => delayMs === 0),
      () => bigints(submissions.map(({ delayMs }) => Math.ceil(delayMs))),
    ),
    unless(
      submissions.every(({ mode }) => mode === "fifo"),
      () => texts(submissions.map(({ mode }) => mode)),
    ),
    bigints(submissions.map(({ keyLimit }) => bounded(keyLimit))),
    bigints(submissions.map(({ queueLimit }) => bounded(queueLimit))),
    bigints(submissions.map(({ keepMs }) => bounded(Math.ceil(keepMs)))),
  ];
}

/** Nothing is out of the ordinary, and all have the same terms: then the store deals with them as a set. */
export function isPlain(submissions: readonly Submission[]): boolean {
  const [first] = submissions;
  return submissions.every(
    ({ queue, level, id, delayMs, mode, keepMs, keyLimit, queueLimit }) =>
      id === undefined &&
      delayMs === 0 &&
      keepMs === 0 &&
      mode === "fifo" &&
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

function unless<T>(absent: boolean, make: () => T): T | null {
  return absent ? null : make();
}
