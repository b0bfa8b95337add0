/** The store as a process of the run has it: the real engine, perhaps with a planted flaw, and the recorder outermost. */
import { setTimeout as wait } from "node:timers/promises";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { openRedisUrl } from "../../src/engines/redis/index.ts";
import { openSqliteUrl } from "../../src/engines/sqlite/index.ts";
import { BatonError, type Engine } from "../../src/index.ts";
import { flawOf } from "../controls/catalogue.ts";
import type { Recorder } from "../history/recorder.ts";
import type { Store } from "../scene.ts";
import type { Part } from "./part.ts";
import { RecordingEngine } from "./recording-engine.ts";

/** Between two tries to reach a store that is away. */
const AGAIN_MS = 100;

const OPEN: Readonly<Record<Store, (url: string) => Engine | Promise<Engine>>> = {
  sqlite: openSqliteUrl,
  nats: openNatsUrl,
  "nats-cluster": openNatsUrl,
  postgres: openPostgresUrl,
  redis: openRedisUrl,
};

export async function openEngine(part: Part, record: Recorder): Promise<Engine> {
  const engine = await reached(part);
  const flawed = flawOf(part.control).engine?.(engine, part) ?? engine;
  return new RecordingEngine(flawed, record);
}

/** A process may begin while the store is down or out of reach. */
async function reached({ store, url }: Part): Promise<Engine> {
  for (;;) {
    try {
      return await OPEN[store](url);
    } catch (error) {
      if (!(error instanceof BatonError && ["STORE_UNAVAILABLE", "OUTCOME_UNKNOWN"].includes(error.code))) throw error;
      await wait(AGAIN_MS);
    }
  }
}
