import type { Items } from "./items.ts";
import { BLOCKED, IDLE, type KeyRow, type Lane, LEASED, READY } from "./key-row.ts";
import type { QueueRow } from "./queue-table.ts";
import type { Transaction } from "./transaction.ts";

/**
 * How items stand in line for a key: one is the head, the others wait behind it in a lane per level. Every rule of
 * order (G5, G8) is here. Callers keep `waiting` counts; these functions keep heads, lanes and states.
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
    this.#tx.count(queue, level, 1);
    key.waiting += 1;
    if (key.state === IDLE) {
      this.#makeHead(key, seq, level, 0);
    } else if (key.state !== LEASED && level < key.level) {
      // Lift: the more urgent item goes first, and the key with it.
      this.stepBack(key);
      this.#makeHead(key, seq, level, 0);
    } else {
      if (front) this.#pushFront(key, level, seq);
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
        key.head = 0;
        key.attempt = 0;
        key.gaps = false;
        key.granting = undefined;
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

  /** Takes every item out of the lanes; the head stays. Used when a newer one replaces them. */
  empty(key: KeyRow): readonly number[] {
    const taken: number[] = [];
    for (const lane of key.lanes.slice()) {
      while (key.lanes.includes(lane)) taken.push(this.#popFront(key, lane));
    }
    return taken;
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
    const lane = key.lanes.find((one) => one.level === level);
    if (lane === undefined) return this.#addLane(key, level, seq);
    this.#items.link(lane.last, seq);
    lane.last = seq;
  }

  #pushFront(key: KeyRow, level: number, seq: number): void {
    const lane = key.lanes.find((one) => one.level === level);
    if (lane === undefined) return this.#addLane(key, level, seq);
    this.#items.link(seq, lane.first);
    lane.first = seq;
  }

  #addLane(key: KeyRow, level: number, seq: number): void {
    key.lanes.push({ level, first: seq, last: seq });
    key.lanes.sort((a, b) => a.level - b.level);
  }

  #popFront(key: KeyRow, lane: Lane): number {
    const seq = lane.first;
    if (seq === lane.last) {
      key.lanes.splice(key.lanes.indexOf(lane), 1);
      return seq;
    }
    const next = this.#items.unlink(seq);
    if (next === undefined) throw new Error(`The line of key ${key.id} is broken behind item ${seq}.`);
    lane.first = next;
    return seq;
  }
}
