/** From the call of submit to the start of the handler: while nothing else is going on, and in a steady stream. */
import { setTimeout as sleep } from "node:timers/promises";
import { makeItem, now } from "../item.ts";
import type { Client } from "../subject.ts";

/** Long enough for every worker to have gone idle again. */
const PAUSE_MS = 4;
/** Subjects that poll every second or two have a few in any case. */
const LEAST = 3;
/** Until the first connections are made and the first item has been through. */
const WARM_UP = 2;
/** The number of an item that only shows that the worker is up. */
const GREETING = -1;
/** More than any subject's poll: what was submitted last has started by then. */
const LAST_POLL_MS = 3_000;

/** How often a stream looks whether items are due. */
const TICK_MS = 1;

export interface LatencyTask {
  readonly boxMs: number;
  /** Before that: not counted. */
  readonly warmUpMs: number;
}

export interface Knocked {
  readonly items: number;
  /** Of these, not counted. */
  readonly skip: number;
}

/** In one process. */
export async function latencyAlone(client: Client, task: LatencyTask): Promise<readonly number[]> {
  const listener = await listen(client);
  const { items, skip } = await knock(client, task, listener.started);
  return await listener.stop(items, skip);
}

export interface Listener {
  /** Called when the item of that number starts. */
  readonly started: Map<number, () => void>;
  /** The worker has taken its first item: it is up. */
  readonly up: Promise<void>;
  /** Waits until so many have started, and tells how long each took but for the first few. */
  readonly stop: (items: number, skip: number) => Promise<readonly number[]>;
}

/** The worker's side of two processes. */
export async function listen(client: Client, concurrency: number = 1): Promise<Listener> {
  const latencies = new Map<number, number>();
  const up = Promise.withResolvers<void>();
  const started = new Map<number, () => void>();
  const stop = await client.work({ concurrency, expect: "idle" }, (item) => {
    up.resolve();
    if (item.number !== GREETING) latencies.set(item.number, now() - item.at);
    started.get(item.number)?.();
  });
  return {
    started,
    up: up.promise,
    async stop(items, skip) {
      const end = now() + LAST_POLL_MS;
      while (latencies.size < items && now() < end) await sleep(PAUSE_MS);
      await stop();
      return Array.from(latencies, ([number, ms]) => (number < skip ? [] : ms)).flat();
    },
  };
}

/** One that is not counted: a worker that is still connecting when the first items come would be charged for that. */
export async function greet(client: Client): Promise<void> {
  await client.submit(makeItem(GREETING, "greeting", 0));
}

/** The producer's side. `started`: how it hears of each start, in one process; without it, it just waits a little longer. */
export async function knock(
  client: Client,
  { boxMs, warmUpMs }: LatencyTask,
  started?: Map<number, () => void>,
): Promise<Knocked> {
  const began = now();
  let skip = 0;
  let number = 0;
  for (; number < LEAST + skip || now() - began < warmUpMs + boxMs; number += 1) {
    if (number < WARM_UP || now() - began < warmUpMs) skip = number + 1;
    const item = makeItem(number, `key-${number}`, 0);
    const start =
      started === undefined ? sleep(PAUSE_MS) : new Promise<void>((resolve) => started.set(number, resolve));
    await client.submit(item);
    await start;
    started?.delete(number);
    await sleep(PAUSE_MS);
  }
  return { items: number, skip };
}

export interface StreamTask {
  readonly boxMs: number;
  /** Items per second. */
  readonly rate: number;
}

export interface Streamed {
  readonly items: number;
  /** From the first to the last acceptance. */
  readonly ms: number;
}

/**
 * So many a second, whether or not earlier ones were accepted, and each counts from when it was due: a subject that
 * holds up its producer for a moment is charged with every item of that moment.
 */
export async function stream(client: Client, { boxMs, rate }: StreamTask): Promise<Streamed> {
  const every = 1_000 / rate;
  const items = Math.ceil(boxMs / every);
  const accepted: Promise<unknown>[] = [];
  const began = now();
  while (accepted.length < items) {
    for (let due = began + accepted.length * every; due <= now() && accepted.length < items; due += every)
      accepted.push(client.submit(makeItem(accepted.length, `key-${accepted.length}`, 0, due)));
    await sleep(TICK_MS);
  }
  await Promise.all(accepted);
  return { items, ms: now() - began };
}
