/** What the program answers, as the port says it. Times are microseconds on the wire. */
import { readAttempts, soFar, withAttempts } from "../../engine/attempts.ts";
import { readFailure, readHeaders } from "../../engine/stored-json.ts";
import type { Instant } from "../../domain/clock.ts";
import type * as port from "../../engine/port.ts";
import { readPayload } from "./operations.ts";

/** What one call brought. */
export interface Answer {
  /** The server's time, in milliseconds. */
  readonly at: number;
  /** Microseconds until something comes due; may be too early. */
  readonly dueInUs: number;
  readonly results: readonly unknown[];
  readonly news: News;
}

/** What others may wait for. */
export interface News {
  /** Ready keys that were left, if some became ready. */
  readonly left: number;
  readonly freed: readonly string[];
  readonly ended: readonly string[];
  /** Key and fence, by turns. */
  readonly lost: readonly string[];
  /** Something comes due before anything that was known. */
  readonly isSooner: boolean;
}

export function readAnswer(reply: unknown): Answer {
  const [now, due, results, news] = list(reply);
  const [left, freed, ended, lost, sooner] = list(news);
  return {
    at: milliseconds(now),
    dueInUs: number(due) - number(now),
    results: list(results),
    news: { left: number(left), freed: texts(freed), ended: texts(ended), lost: texts(lost), isSooner: sooner === 1 },
  };
}

export function list(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new TypeError("Redis answered with something else than a list.");
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  throw new TypeError("Redis answered with something else than a text.");
}

export function number(value: unknown): number {
  const found = Number(value);
  if (Number.isNaN(found)) throw new TypeError("Redis answered with something else than a number.");
  return found;
}

export function texts(value: unknown): readonly string[] {
  return list(value).map(text);
}

export function milliseconds(value: unknown): number {
  return Math.floor(number(value) / 1_000);
}

/** A text with what belongs to the item, then the body, for each. The first of a run names its key; those behind it follow. */
export function readGrants(result: unknown, queue: string, levels: readonly string[], since: Instant): port.Grant[] {
  const parts = list(result);
  const grants: (port.Grant & { behind?: port.Item[] })[] = [];
  for (let index = 0; index + 1 < parts.length; index += 2) {
    const [name = "", fence, id = "", level, kind = "", form = "", submitted, attempt, headers = "", losses] = text(
      parts[index],
    ).split("\0");
    const first = name === "" ? grants.at(-1) : undefined;
    const key = first?.lease.key ?? name;
    const item = {
      id,
      queue,
      key,
      level: levelOf(levels, level),
      payload: readPayload(kind, form, text(parts[index + 1])),
      ...readHeaders(headers === "" ? undefined : headers),
      submittedAt: milliseconds(submitted),
      attempt: Number(attempt),
      ...(losses === undefined ? {} : { losses: Number(losses) }),
    };
    if (first === undefined)
      grants.push({ lease: { queue, key, fence: Number(fence), since, handle: undefined }, item });
    else (first.behind ??= []).push(item);
  }
  return grants;
}

/** `E`: it has ended. `L`: it lives. */
export function readItem(
  result: unknown,
  id: string,
  levels: readonly string[],
  nowMs: number,
): port.ItemReport | undefined {
  const [mark, key, level, submitted, attempt, state, ...rest] = list(result);
  if (mark === undefined) return undefined;
  const common = {
    id,
    key: text(key),
    level: levelOf(levels, level),
    attempt: number(attempt),
    submittedAt: milliseconds(submitted),
  };
  const outcome = readOutcome(result);
  if (outcome !== undefined) {
    return { ...common, state: outcome.state, ...withAttempts(outcome.attempts ?? []), outcome };
  }
  const [due, running, tried] = rest;
  const living = { ...common, ...soFar(readAttempts(text(tried))) };
  if (state === "running") return { ...living, state, running: readRunning(running) };
  const dueAt = milliseconds(due);
  if (state === "delayed") return { ...living, state, dueAt };
  return { ...living, state: "waiting", ...(dueAt > nowMs ? { dueAt } : {}) };
}

export function readOutcome(result: unknown): port.Outcome | undefined {
  const [mark, , , , attempt, state, at, kind, form, body, failure, tried, missing] = list(result);
  if (mark !== "E") return undefined;
  if (state !== "done" && state !== "dead" && state !== "cancelled" && state !== "replaced")
    throw new TypeError("The store has an unknown outcome.");
  return {
    state,
    at: milliseconds(at),
    attempt: number(attempt),
    ...(kind === "" ? {} : { result: readPayload(text(kind), text(form), text(body)) }),
    ...(missing === "" ? {} : { resultMissing: text(missing) }),
    ...(failure === "" ? {} : { failure: readFailure(text(failure)) }),
    ...withAttempts(readAttempts(text(tried))),
  };
}

/** `levels`, paused, delayed, running, dead, then what waits per level. */
export function readQueue(result: unknown, queue: string): port.QueueReport {
  const [written, paused, delayed, running, dead, ...counts] = list(result);
  const levels = readLevels(text(written)).map((level, rank) => ({ level, waiting: number(counts[rank]) }));
  return {
    queue,
    paused: paused === 1,
    levels,
    waiting: levels.reduce((sum, { waiting }) => sum + waiting, 0),
    delayed: number(delayed),
    running: number(running),
    dead: number(dead),
  };
}

export function readKey(result: unknown): port.KeyReport {
  const [name, state, held, paused, waiting, delayed, running] = list(result);
  if (state === "damaged") {
    const damage = `The record of key ${JSON.stringify(text(name))} is damaged: somebody else wrote into it.`;
    return { key: text(name), state: "blocked", paused: false, waiting: 0, delayed: 0, damage };
  }
  return {
    key: text(name),
    state: held === 1 ? "held" : keyState(text(state)),
    paused: paused === 1,
    waiting: number(waiting),
    delayed: number(delayed),
    ...(running === undefined ? {} : { running: readRunning(running) }),
  };
}

function keyState(state: string): port.KeyReport["state"] {
  if (state === "leased") return "running";
  // A parked key has an item that could run, but the key is paused or kept.
  if (state === "ready" || state === "parked") return "ready";
  return state === "blocked" ? "blocked" : "idle";
}

export function readDead(result: unknown, levels: readonly string[]): port.DeadReport {
  const [id, key, level, at, attempt, submitted, failure, kind, form, body, tried] = list(result);
  return {
    id: text(id),
    key: text(key),
    level: levelOf(levels, level),
    at: milliseconds(at),
    attempt: number(attempt),
    submittedAt: milliseconds(submitted),
    failure: readFailure(text(failure)),
    ...withAttempts(readAttempts(text(tried))),
    payload: readPayload(text(kind), text(form), text(body)),
  };
}

function readRunning(value: unknown): port.RunningReport {
  const [worker, fence, since, deadline, attempt, progress, id] = list(value);
  return {
    worker: text(worker),
    fence: number(fence),
    since: milliseconds(since),
    deadline: milliseconds(deadline),
    attempt: number(attempt),
    ...(progress === "" ? {} : { progress: number(progress) }),
    ...(id === "" ? {} : { id: text(id) }),
  };
}

/** In the program levels count from 1. */
export function levelOf(levels: readonly string[], rank: unknown): string {
  return levels[number(rank) - 1] ?? "";
}

export function readLevels(json: string): readonly string[] {
  const value: unknown = JSON.parse(json);
  return texts(value);
}
