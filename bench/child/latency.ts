/** From the call of submit to the start of the handler, while nothing else is going on. */
import { setTimeout as sleep } from "node:timers/promises";
import { makeItem, now } from "../item.ts";
import type { Client } from "../subject.ts";

/** Long enough for every worker to have gone idle again. */
const PAUSE_MS = 4;
/** Subjects that poll every second or two have a few in any case. */
const LEAST = 3;
/** Until the first connections are made and the first item has been through. */
const WARM_UP = 2;
/** More than any subject's poll: what was submitted last has started by then. */
const LAST_POLL_MS = 3_000;

export interface LatencyTask {
  readonly boxMs: number;
}

/** In one process. */
export async function latencyAlone(client: Client, { boxMs }: LatencyTask): Promise<readonly number[]> {
  const listener = await listen(client);
  return listener.stop(await knock(client, { boxMs }, listener.started));
}

export interface Listener {
  /** Called when the item of that number starts. */
  readonly started: Map<number, () => void>;
  readonly stop: (items: number) => Promise<readonly number[]>;
}

/** The worker's side of two processes. */
export async function listen(client: Client): Promise<Listener> {
  const latencies: number[] = [];
  const started = new Map<number, () => void>();
  const stop = await client.work({ concurrency: 1, expect: "idle" }, (item) => {
    if (item.number >= WARM_UP) latencies.push(now() - item.at);
    started.get(item.number)?.();
  });
  return {
    started,
    async stop(items) {
      const end = now() + LAST_POLL_MS;
      while (latencies.length < items - WARM_UP && now() < end) await sleep(PAUSE_MS);
      await stop();
      return latencies;
    },
  };
}

/** The producer's side. `started`: how it hears of each start, in one process; without it, it just waits a little longer. Returns how many. */
export async function knock(
  client: Client,
  { boxMs }: LatencyTask,
  started?: Map<number, () => void>,
): Promise<number> {
  const began = now();
  let number = 0;
  for (; number < LEAST + WARM_UP || now() - began < boxMs; number += 1) {
    const item = makeItem(number, `key-${number}`, 0);
    const start =
      started === undefined ? sleep(PAUSE_MS) : new Promise<void>((resolve) => started.set(number, resolve));
    await client.submit(item);
    await start;
    started?.delete(number);
    await sleep(PAUSE_MS);
  }
  return number;
}
