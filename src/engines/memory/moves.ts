/**
 * How items and keys change. Each move leaves the key in one of its states (see `state.ts`) and in the right
 * place: ready keys in the ready order, blocked heads on the agenda, idle keys forgotten.
 *
 * - arrive: an item joins its key; a more urgent one lifts a key that waits at a lower level.
 * - elect: a key without lease gets the right head: the most urgent that waits, first come first.
 * - beginLease, advance, endLease: the right to the key begins, goes on with the next item of its run, and ends.
 * - end, bury: an item is over.
 */
import type { Instant } from "../../domain/clock.ts";
import { EMPTY_PAYLOAD } from "../../domain/payload.ts";
import { addAttempt, lostAttempt, withAttempts } from "../../engine/attempts.ts";
import type { Outcome } from "../../engine/port.ts";
import { nextFence, nextNumber } from "./agenda.ts";
import { Line } from "./line.ts";
import { enter, forgetIfIdle } from "./queue.ts";
import type { StoredItem, StoredKey, StoredLease } from "./state.ts";

/** The item waits from now on. */
export function arrive(item: StoredItem, now: Instant): void {
  const { key, yielded } = item;
  enter(item, "waiting");
  item.dueAt = undefined;
  item.yielded = false;
  const lane = laneOf(key, item.level);
  const covered = key.lease?.behind.at(-1);
  // What a lease covers is not overtaken: perhaps it has begun.
  if (yielded && covered?.level === item.level) lane.joinBehind(covered, item);
  else if (yielded) lane.joinFront(item);
  else lane.joinBack(item);
  // Behind the head nothing changes for the key: joining a long line costs no more than a short one.
  if (key.head === undefined || item.level < key.head.level) elect(key, now);
}

/** Delayed items block nobody: they are outside the lanes until they arrive. */
export function delay(item: StoredItem, dueAt: number): void {
  enter(item, "delayed");
  item.dueAt = dueAt;
  item.key.delayed.joinBack(item);
  item.key.queue.agenda.delayed.add(item);
}

/** A delayed item that was taken off the agenda. */
export function comeDue(item: StoredItem, now: Instant): void {
  item.key.delayed.leave(item);
  arrive(item, now);
}

/**
 * Gives a key without lease its head, and the head its place. A head stays unless something more urgent waits;
 * then it goes back to the front of its lane, with its attempts and its back-off.
 */
export function elect(key: StoredKey, now: Instant): void {
  if (key.lease !== undefined) return;
  const level = mostUrgentLane(key);
  if (level !== undefined && (key.head === undefined || level < key.head.level)) {
    withdraw(key);
    if (key.head !== undefined) laneOf(key, key.head.level).joinFront(key.head);
    const lane = laneOf(key, level);
    key.head = lane.first;
    if (lane.first !== undefined) lane.leave(lane.first);
    takePlace(key);
  }
  arrange(key, now);
}

/**
 * Puts a key without lease where its head belongs: among the ready ones, or on the agenda until its back-off is
 * over. A key that is there already stays.
 */
export function arrange(key: StoredKey, now: Instant): void {
  const { head, queue } = key;
  if (head === undefined) {
    forgetIfIdle(key);
    return;
  }
  if (key.slot !== -1 || head.slot !== -1) return;
  if (head.dueAt !== undefined && head.dueAt > now.wall) {
    queue.agenda.blocked.add(head);
    return;
  }
  head.dueAt = undefined;
  if (key.paused) return;
  key.readySince = now.wall;
  queue.ready[head.level]?.add(key);
  queue.agenda.stirred.add(queue);
}

/** A back-off, taken off the agenda, is over. The key queues up behind those that are ready already. */
export function unblock(key: StoredKey, now: Instant): void {
  takePlace(key);
  arrange(key, now);
}

/** The key goes to the end of the ready order, when it is ready next. */
export function takePlace(key: StoredKey): void {
  key.place = nextNumber(key.queue.agenda);
}

/** Takes the key out of the ready order, and its head off the agenda. Always before either is changed. */
export function withdraw(key: StoredKey): void {
  if (key.head === undefined) return;
  key.queue.ready[key.head.level]?.remove(key);
  key.queue.agenda.blocked.remove(key.head);
}

export interface NewLease {
  /** Undefined for a hold. */
  readonly item: StoredItem | undefined;
  readonly behind: StoredItem[];
  readonly worker: string;
  readonly leaseMs: number;
  readonly turnSince: number;
}

export function beginLease(key: StoredKey, { leaseMs, ...wanted }: NewLease, now: Instant): StoredLease {
  if (key.lease !== undefined) throw new Error("A leased key was leased again.");
  withdraw(key);
  const { agenda } = key.queue;
  const { item, behind } = wanted;
  const made: StoredLease = {
    ...wanted,
    key,
    fence: nextFence(agenda),
    since: now.wall,
    deadline: now.monotonic + leaseMs,
    deadlineWall: now.wall + leaseMs,
    progress: undefined,
    holder: undefined,
    slot: -1,
  };
  key.lease = made;
  agenda.leases.add(made);
  for (const covered of behind) covered.covered = true;
  if (item !== undefined) run(item);
  return made;
}

/** The items of the run that may follow its first one: innocent, and equal to it. */
export function runBehind({ head, lanes, alone }: StoredKey, most: number): StoredItem[] {
  const behind: StoredItem[] = [];
  if (head === undefined || most <= 1 || head.attempts > 0 || alone > 0) return behind;
  for (const item of lanes[head.level] ?? []) {
    if (item.attempts > 0 || behind.length + 1 >= most) break;
    behind.push(item);
  }
  return behind;
}

/** The item that ran is over, and was removed from its key: the next one of the run runs, and its attempt counts. */
export function advance(lease: StoredLease): void {
  const { key } = lease;
  const next = lease.behind.shift();
  lease.item = next;
  if (next === undefined) return;
  laneOf(key, next.level).leave(next);
  next.covered = false;
  key.head = next;
  takePlace(key);
  run(next);
}

/** What the lease covered and did not begin waits as before. A cancel that its worker never heard of is carried out. */
export function uncover(lease: StoredLease, now: Instant): void {
  for (const item of lease.behind) {
    item.covered = false;
    if (item.cancelRequested) cancelWaiting(item, now);
  }
  lease.behind = [];
}

export function cancelWaiting(item: StoredItem, now: Instant): void {
  remove(item);
  end(item, { state: "cancelled", at: now.wall, attempt: item.attempts }, now);
}

function run(item: StoredItem): void {
  enter(item, "running");
  item.attempts += 1;
}

/** The key is free, and its head waits again in its old place. The caller goes on with the head, or elects. */
export function endLease(ended: StoredLease, now: Instant): void {
  const { key, item } = ended;
  uncover(ended, now);
  key.queue.agenda.leases.remove(ended);
  key.lease = undefined;
  if (key.queue.holds.size > 0) key.queue.agenda.stirred.add(key.queue);
  if (item !== undefined) enter(item, "waiting");
}

/** Nobody settled in time. What ran is ready again; a cancel that its worker never heard of is carried out. */
export function expire(expired: StoredLease, now: Instant): void {
  const covered = expired.behind.length + 1;
  endLease(expired, now);
  const { item, key, holder } = expired;
  // What it leads to must not happen within this turn.
  if (holder !== undefined) queueMicrotask(() => holder.lost(holder.lease));
  if (item !== undefined) key.alone = Math.max(key.alone, covered);
  if (item?.cancelRequested === true) {
    cancelWaiting(item, now);
  } else if (item !== undefined) {
    const lost = lostAttempt({ attempt: item.attempts, at: now.wall, worker: expired.worker });
    item.tried = addAttempt(item.tried, lost);
    item.losses += 1;
  }
  elect(key, now);
}

/** Takes an item that does not run out of its key. The caller elects. */
export function remove(item: StoredItem): void {
  const { key } = item;
  if (item.phase === "delayed") {
    key.queue.agenda.delayed.remove(item);
    key.delayed.leave(item);
  } else if (item === key.head) {
    withdraw(key);
    key.head = undefined;
  } else {
    laneOf(key, item.level).leave(item);
  }
}

/** The item, which was removed from its key, is over. It is remembered as long as it was submitted to be. */
export function end(item: StoredItem, how: Outcome, now: Instant): void {
  const { queue } = item.key;
  const outcome = { ...how, ...withAttempts(item.tried) };
  enter(item, "ended");
  item.outcome = outcome;
  item.payload = EMPTY_PAYLOAD;
  if (item.keepMs > 0) {
    item.forgetAt = now.wall + item.keepMs;
    queue.agenda.remembered.add(item);
    tellWatchers(item, outcome);
  } else {
    queue.items.delete(item.id);
    tellWatchers(item, undefined);
  }
}

/** The item, which was removed from its key, becomes a dead letter. */
export function bury(item: StoredItem, how: Outcome): void {
  const outcome = { ...how, ...withAttempts(item.tried) };
  enter(item, "dead");
  item.key.queue.deadLetters.joinBack(item);
  item.outcome = outcome;
  tellWatchers(item, outcome);
}

function tellWatchers(item: StoredItem, outcome: Outcome | undefined): void {
  const { watchers } = item;
  item.watchers = undefined;
  for (const tell of watchers ?? []) tell(outcome);
}

function laneOf(key: StoredKey, level: number): Line<StoredItem> {
  let lane = key.lanes[level];
  if (lane === undefined) {
    lane = new Line();
    key.lanes[level] = lane;
  }
  return lane;
}

function mostUrgentLane(key: StoredKey): number | undefined {
  const level = key.lanes.findIndex((lane) => lane !== undefined && lane.size > 0);
  return level === -1 ? undefined : level;
}
