import { Heap } from "./heap.ts";
import { Line } from "./line.ts";
import type { Agenda, Phase, StoredItem, StoredKey, StoredQueue } from "./state.ts";

export function newQueue(name: string, levels: readonly string[], agenda: Agenda): StoredQueue {
  return {
    name,
    levels,
    agenda,
    paused: false,
    keys: new Map(),
    items: new Map(),
    ready: levels.map(() => new Heap<StoredKey>((a, b) => a.place < b.place)),
    deadLetters: new Line(),
    claims: new Line(),
    holds: new Line(),
    counts: { delayed: 0, waiting: 0, running: 0, dead: 0, ended: 0 },
    waitingPerLevel: levels.map(() => 0),
  };
}

/** The key, made if it is not there. */
export function keyOf(queue: StoredQueue, name: string): StoredKey {
  let key = queue.keys.get(name);
  if (key === undefined) {
    key = {
      name,
      queue,
      head: undefined,
      lanes: [],
      delayed: new Line(),
      waiting: 0,
      lease: undefined,
      paused: false,
      alone: 0,
      place: 0,
      readySince: 0,
      slot: -1,
    };
    queue.keys.set(name, key);
  }
  return key;
}

/** A key is worth memory only while it has an item, a lease or a pause. */
export function forgetIfIdle(key: StoredKey): void {
  const isIdle = key.head === undefined && key.lease === undefined && key.delayed.size === 0;
  if (isIdle && !key.paused) key.queue.keys.delete(key.name);
}

/** A new item is counted from its first phase on. */
export function addItem(item: StoredItem): void {
  item.key.queue.items.set(item.id, item);
  count(item, 1);
}

export function enter(item: StoredItem, phase: Phase): void {
  count(item, -1);
  item.phase = phase;
  count(item, 1);
}

export function hasReady(queue: StoredQueue): boolean {
  return !queue.paused && queue.ready.some((keys) => keys.size > 0);
}

/** Per level: how long its first ready key has been ready. */
export function waitedMs(queue: StoredQueue, wall: number): (number | undefined)[] {
  return queue.ready.map((keys) => {
    const first = keys.first();
    return first === undefined ? undefined : wall - first.readySince;
  });
}

function count(item: StoredItem, by: 1 | -1): void {
  const { queue } = item.key;
  queue.counts[item.phase] += by;
  if (item.phase !== "waiting") return;
  item.key.waiting += by;
  queue.waitingPerLevel[item.level] = (queue.waitingPerLevel[item.level] ?? 0) + by;
}
