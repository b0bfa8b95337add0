import type { EndedItem, ItemRow, Items } from "./items.ts";
import { BLOCKED, IDLE, type KeyRow, type Lane, LEASED, READY, removeHead } from "./key-row.ts";
import type { QueueRow } from "./queue-table.ts";
import type { Transaction } from "./transaction.ts";

/**
 * How items stand in line for a key: one is the head, the others wait behind it in a lane per level. Every rule of
 * order (G5, G8) is here. Callers count what leaves it; these functions keep heads, lanes and states.
 */
export class Line {
  readonly #tx: Transaction;
  readonly #items: Items;

  constructor(tx: Transaction, items: Items) {
    this.#tx = tx;
    this.#items = items;
  }

  /** An item comes to the key: a new one to the back of its lane, one that yielded its place to the front. */
  arrive(queue: QueueRow, key: KeyRow, seq: number, level: number, front: boolean): void {
    this.#tx.count(queue, key, level, 1);
    if (key.state === IDLE) {
      this.#makeHead(key, seq, level, 0);
    } else if (key.state !== LEASED && level < key.level) {
      // Lift: the more urgent item goes first, and the key with it.
      this.stepBack(key);
      this.#makeHead(key, seq, level, 0);
    } else {
      if (front) this.#comeBack(key, level, seq);
      else this.#pushBack(key, level, seq);
      this.#tx.keys.saveLength(key);
    }
  }

  /** The head goes to the front of its own lane, with its attempts. */
  stepBack(key: KeyRow): void {
    if (key.attempt > 0) {
      this.#items.addAttempts(key.head, key.attempt);
      key.gaps = true;
    }
    this.#pushFront(key, key.level, key.head);
    key.head = 0;
    key.attempt = 0;
  }

  /** The head is gone: the first item of the most urgent lane takes its place. */
  promote(key: KeyRow): void {
    for (;;) {
      const lane = key.lanes[0];
      if (lane === undefined) {
        key.state = IDLE;
        removeHead(key);
        key.gaps = false;
        if (!key.paused && key.delayed === 0) key.alone = 0;
        return this.#tx.keys.save(key);
      }
      const seq = this.#popFront(key, lane);
      const due = key.gaps ? this.#items.due(seq) : 0;
      // An item that was cancelled while it waited is only a link by now.
      if (due !== undefined) return this.#makeHead(key, seq, lane.level, due);
    }
  }

  /** The lease ended and the head stays: as it was before. */
  resume(key: KeyRow): void {
    if (key.head === 0) return this.promote(key);
    // While it was leased, a more urgent item may have come.
    if (this.#waitsAbove(key)) {
      this.stepBack(key);
      return this.promote(key);
    }
    this.#open(key, this.#items.due(key.head) ?? 0);
  }

  #waitsAbove(key: KeyRow): boolean {
    for (;;) {
      const lane = key.lanes[0];
      if (lane === undefined || lane.level >= key.level) return false;
      if (!key.gaps || this.#items.due(lane.first) !== undefined) return true;
      this.#popFront(key, lane);
    }
  }

  /** The time of a blocked head has come. */
  unblock(key: KeyRow): void {
    key.place = this.#tx.next();
    this.#open(key, 0);
  }

  /** Takes every item out of the lanes; the head and what a lease covers stay. Used when a newer one replaces them. */
  empty(key: KeyRow): readonly number[] {
    const covered = this.#setAside(key);
    const taken: number[] = [];
    for (const lane of key.lanes.slice()) {
      while (key.lanes.includes(lane)) taken.push(this.#popFront(key, lane));
    }
    this.#putBack(key, covered);
    return taken;
  }

  /** Covers up to so many items that may follow the head in its run: never tried, and of its level. */
  cover(key: KeyRow, most: number): readonly ItemRow[] {
    const behind = this.#untried(key, most);
    key.covered = behind.length + 1;
    key.behind = behind.map(({ seq, id, keep, attempt, tried }) => ({ seq, id, keep, attempt, tried }));
    return behind;
  }

  #untried(key: KeyRow, most: number): readonly ItemRow[] {
    for (let lane = laneOf(key, key.level); lane !== undefined; lane = laneOf(key, key.level)) {
      const links = this.#items.lineForGrant(lane.first, lane.last, most);
      const waiting = links.filter((one) => one !== undefined);
      const tried = waiting.findIndex(({ attempt }) => attempt > 0);
      if (waiting.length === links.length) return tried === -1 ? waiting : waiting.slice(0, tried);
      // Items that were cancelled are only links by now. What a lease covers is counted, and has none of these.
      for (let count = 0; count < links.length; count += 1) this.#popFront(key, lane);
      for (const { seq } of waiting.toReversed()) this.#pushFront(key, key.level, seq);
    }
    return [];
  }

  /** What the lease covers behind the head, in order. */
  behind(key: KeyRow): EndedItem[] {
    const lane = key.covered === 1 ? undefined : laneOf(key, key.level);
    if (lane === undefined) return [];
    return (key.behind ??= this.#items.lineForEnd(lane.first, lane.last, key.covered - 1));
  }

  /** The head of a run is gone: the next item of the run runs, and its attempt counts. */
  advance(queue: QueueRow, key: KeyRow): void {
    const lane = laneOf(key, key.level);
    const next = this.behind(key).shift();
    if (lane === undefined || next === undefined) throw new Error(`The run of key ${key.id} has no next item.`);
    key.head = this.#popFront(key, lane, key.behind?.[0]?.seq);
    key.granting = next;
    key.attempt = 1;
    key.covered -= 1;
    key.cancel = key.marked.includes(next.seq);
    key.marked = key.marked.filter((seq) => seq !== next.seq);
    key.place = this.#tx.next();
    this.#tx.count(queue, key, key.level, -1);
    this.#tx.keys.save(key);
  }

  #makeHead(key: KeyRow, seq: number, level: number, due: number): void {
    key.head = seq;
    key.level = level;
    key.attempt = 0;
    key.granting = undefined;
    key.place = this.#tx.next();
    this.#open(key, due);
  }

  #open(key: KeyRow, due: number): void {
    key.cancel = false;
    if (due > this.#tx.wall) {
      key.state = BLOCKED;
      key.at = due;
    } else {
      key.state = READY;
      key.readyAt = this.#tx.wall;
      this.#tx.opened.push(key);
    }
    this.#tx.keys.save(key);
  }

  #pushBack(key: KeyRow, level: number, seq: number): void {
    const lane = laneOf(key, level);
    if (lane === undefined) return addLane(key, { level, first: seq, last: seq });
    this.#items.link(lane.last, seq);
    lane.last = seq;
  }

  #pushFront(key: KeyRow, level: number, seq: number): void {
    this.#putBack(key, { level, first: seq, last: seq });
  }

  /** To the front of its lane, but not before what a lease covers: perhaps that has begun. */
  #comeBack(key: KeyRow, level: number, seq: number): void {
    const covered = this.#setAside(key);
    this.#pushFront(key, level, seq);
    this.#putBack(key, covered);
  }

  #popFront(key: KeyRow, lane: Lane, next?: number): number {
    const seq = lane.first;
    this.#cut(key, lane, seq, next);
    return seq;
  }

  /** Takes what a lease covers out of its lane. */
  #setAside(key: KeyRow): Lane | undefined {
    const last = this.behind(key).at(-1)?.seq;
    const lane = laneOf(key, key.level);
    if (last === undefined || lane === undefined) return undefined;
    const covered = { ...lane, last };
    this.#cut(key, lane, last);
    return covered;
  }

  #putBack(key: KeyRow, part: Lane | undefined): void {
    if (part === undefined) return;
    const lane = laneOf(key, part.level);
    if (lane === undefined) return addLane(key, part);
    this.#items.link(part.last, lane.first);
    lane.first = part.first;
  }

  /** Takes the first items out of a lane, up to this one. */
  #cut(key: KeyRow, lane: Lane, last: number, known?: number): void {
    if (last === lane.last) {
      key.lanes.splice(key.lanes.indexOf(lane), 1);
      return;
    }
    const next = this.#items.unlink(last, known);
    if (next === undefined) throw new Error(`The line of key ${key.id} is broken behind item ${last}.`);
    lane.first = next;
  }
}

function laneOf(key: KeyRow, level: number): Lane | undefined {
  return key.lanes.find((one) => one.level === level);
}

function addLane(key: KeyRow, lane: Lane): void {
  key.lanes.push(lane);
  key.lanes.sort((a, b) => a.level - b.level);
}
