import type { Instant } from "../../domain/clock.ts";
import { type BatonError, InvalidInput, KeyBusy, KeyFull, QueueFull } from "../../domain/errors.ts";
import { ASSIGNED_ID_MARK } from "../../domain/names.ts";
import type { Accepted, Submission, SubmitResult } from "../../engine/port.ts";
import { nextNumber } from "./agenda.ts";
import { levelName, storedItem } from "./item.ts";
import { arrange, arrive, delay, end, remove, withdraw } from "./moves.ts";
import { addItem, keyOf } from "./queue.ts";
import type { StoredItem, StoredKey, StoredQueue } from "./state.ts";

/** Accepts one submission or says why not. The order of the checks is part of the contract. */
export function admit(queue: StoredQueue, submission: Submission, now: Instant): SubmitResult {
  const known = submission.id === undefined ? undefined : queue.items.get(submission.id);
  if (known !== undefined) return { ok: true, accepted: receipt(known, true, []) };

  const level = queue.levels.indexOf(submission.level);
  const error = level === -1 ? unknownLevel(queue, submission) : refusal(queue, submission);
  if (error !== undefined) return { ok: false, error };

  const key = keyOf(queue, submission.key);
  const sequence = nextNumber(queue.agenda);
  const id = submission.id ?? `${ASSIGNED_ID_MARK}${sequence.toString(36)}`;
  const item = storedItem(submission, id, key, level, now.wall, sequence);
  const place = submission.mode === "latest" && submission.delayMs === 0 ? placeToKeep(key, level) : undefined;
  const replaced = submission.mode === "latest" ? replaceWaiting(key, now) : [];
  addItem(item);
  if (submission.delayMs > 0) delay(item, now.wall + submission.delayMs);
  else arrive(item, now);
  if (place !== undefined) keepPlace(key, place, now);
  return { ok: true, accepted: receipt(item, false, replaced) };
}

function refusal(queue: StoredQueue, submission: Submission): BatonError | undefined {
  const { mode, keyLimit, queueLimit } = submission;
  const key = queue.keys.get(submission.key);
  const behind = key === undefined ? 0 : key.waiting + key.delayed.size;
  if (mode === "strict" && (behind > 0 || key?.lease !== undefined)) return new KeyBusy(queue.name, submission.key);
  if (mode === "fifo" && behind >= keyLimit) return new KeyFull(queue.name, submission.key, keyLimit);
  // What replaces does not grow the queue.
  if (mode === "latest" && behind > (key?.lease?.behind.length ?? 0)) return undefined;
  if (queue.counts.waiting + queue.counts.delayed >= queueLimit) return new QueueFull(queue.name, queueLimit);
  return undefined;
}

function unknownLevel(queue: StoredQueue, submission: Submission): BatonError {
  return new InvalidInput("level", submission.level, `one of ${queue.levels.join(", ")}`);
}

/** Everything of the key that no lease covers: the head, the lanes by level, then what is delayed. */
function replaceWaiting(key: StoredKey, now: Instant): string[] {
  const old: StoredItem[] = key.head?.phase === "waiting" ? [key.head] : [];
  old.push(...key.lanes.flatMap((lane) => [...(lane ?? [])].filter(({ covered }) => !covered)));
  old.push(...[...key.delayed].toSorted((a, b) => a.sequence - b.sequence));
  for (const item of old) {
    remove(item);
    end(item, { state: "replaced", at: now.wall, attempt: item.attempts }, now);
  }
  return old.map((item) => item.id);
}

interface Place {
  readonly place: number;
  readonly readySince: number;
}

/** A key that is ready at this level keeps its place when its head is replaced: newer news must not wait longer. */
function placeToKeep(key: StoredKey, level: number): Place | undefined {
  const ready = key.lease === undefined && key.head?.level === level && key.head.dueAt === undefined;
  return ready ? { place: key.place, readySince: key.readySince } : undefined;
}

function keepPlace(key: StoredKey, { place, readySince }: Place, now: Instant): void {
  withdraw(key);
  key.place = place;
  arrange(key, now);
  key.readySince = readySince;
}

function receipt(item: StoredItem, duplicate: boolean, replaced: readonly string[]): Accepted {
  return { id: item.id, key: item.key.name, level: levelName(item), at: item.submittedAt, duplicate, replaced };
}
