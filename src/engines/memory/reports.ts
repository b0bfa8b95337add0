import type { Instant } from "../../domain/clock.ts";
import type * as port from "../../engine/port.ts";
import { soFar, withAttempts } from "../../engine/attempts.ts";
import { copyPayload, levelName } from "./item.ts";
import type { StoredItem, StoredKey, StoredLease, StoredQueue } from "./state.ts";

export function itemReport(item: StoredItem, now: Instant): port.ItemReport {
  const { id, key, phase, attempts: attempt, submittedAt, dueAt, outcome } = item;
  const common = { id, key: key.name, level: levelName(item), attempt, submittedAt };
  if (phase === "dead" || phase === "ended") {
    const over = { ...common, ...withAttempts(item.tried) };
    return outcome === undefined ? { ...over, state: "dead" } : { ...over, state: outcome.state, outcome };
  }
  const living = { ...common, ...soFar(item.tried) };
  if (phase === "running") {
    return key.lease === undefined
      ? { ...living, state: phase }
      : { ...living, state: phase, running: runningReport(key.lease) };
  }
  return { ...living, state: phase, ...(dueAt !== undefined && dueAt > now.wall ? { dueAt } : {}) };
}

export function queueReport(queue: StoredQueue): port.QueueReport {
  const { waiting, delayed, running, dead } = queue.counts;
  const levels = queue.levels.map((level, index) => ({ level, waiting: queue.waitingPerLevel[index] ?? 0 }));
  return { queue: queue.name, paused: queue.paused, levels, waiting, delayed, running, dead };
}

export function keyReports(queue: StoredQueue, { after, limit, leased }: port.KeyPageRequest): port.KeyReport[] {
  // By the bytes of UTF-8, as stores on disk sort; JavaScript's own order differs beyond the basic plane.
  const afterBytes = after === undefined ? undefined : Buffer.from(after);
  return [...queue.keys.values()]
    .filter((key) => leased !== true || key.lease !== undefined)
    .map((key) => ({ key, bytes: Buffer.from(key.name) }))
    .filter(({ bytes }) => afterBytes === undefined || Buffer.compare(bytes, afterBytes) > 0)
    .toSorted((a, b) => Buffer.compare(a.bytes, b.bytes))
    .slice(0, limit)
    .map(({ key }) => keyReport(key));
}

function keyReport(key: StoredKey): port.KeyReport {
  const { name, paused, waiting, delayed, lease } = key;
  const running = lease === undefined ? {} : { running: runningReport(lease) };
  return { key: name, state: keyState(key), paused, waiting, delayed: delayed.size, ...running };
}

function keyState({ head, lease }: StoredKey): port.KeyReport["state"] {
  if (lease !== undefined) return lease.item === undefined ? "held" : "running";
  if (head === undefined) return "idle";
  return head.dueAt === undefined ? "ready" : "blocked";
}

function runningReport({
  worker,
  fence,
  since,
  deadlineWall: deadline,
  item,
  progress,
}: StoredLease): port.RunningReport {
  return {
    worker,
    fence,
    since,
    deadline,
    attempt: item?.attempts ?? 0,
    ...(progress === undefined ? {} : { progress }),
    ...(item === undefined ? {} : { id: item.id }),
  };
}

export function deadReports(queue: StoredQueue, { after, limit }: port.PageRequest): port.DeadReport[] {
  const last = after === undefined ? undefined : queue.items.get(after);
  const reports: port.DeadReport[] = [];
  // When the last page's letter is gone by now, so may be those before it; from the start nothing is missed.
  let item = last?.phase === "dead" ? last.behind : queue.deadLetters.first;
  for (; item !== undefined && reports.length < limit; item = item.behind) reports.push(deadReport(item));
  return reports;
}

function deadReport(item: StoredItem): port.DeadReport {
  const { id, key, attempts: attempt, submittedAt, payload, outcome } = item;
  return {
    id,
    key: key.name,
    level: levelName(item),
    at: outcome?.at ?? submittedAt,
    attempt,
    submittedAt,
    failure: outcome?.failure ?? { message: "The reason was not kept." },
    ...withAttempts(item.tried),
    payload: copyPayload(payload),
  };
}
