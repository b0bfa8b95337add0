import { Baton } from "../src/client/baton.ts";
import type { Queue } from "../src/client/queue.ts";
import type { QueueOptions } from "../src/domain/settings.ts";
import { MemoryStore } from "../src/engines/memory/index.ts";
import type { BatonEvent } from "../src/index.ts";
import { ManualClock } from "./manual-clock.ts";
import { ScriptedEngine } from "./scripted-engine.ts";

/** A queue with a worker's surroundings: real client, real engine, a clock that is moved by hand. */
export interface Stage {
  readonly clock: ManualClock;
  readonly store: MemoryStore;
  readonly engine: ScriptedEngine;
  readonly baton: Baton;
  readonly queue: Queue<unknown>;
  readonly events: BatonEvent[];
  /** Names of the events so far. */
  told(): string[];
}

export const LEASE_MS = 3_000;

export function setStage(options: QueueOptions = {}): Stage {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const engine = new ScriptedEngine(store.connect());
  const events: BatonEvent[] = [];
  const baton = new Baton(engine, { clock, random: () => 0.5, onEvent: (event) => events.push(event) });
  const queue = baton.queue("cars", {
    lease: LEASE_MS,
    retry: { attempts: 2, backoff: 100 },
    history: "1h",
    ...options,
  });
  return { clock, store, engine, baton, queue, events, told: () => events.map(nameOf) };
}

function nameOf(event: BatonEvent): string {
  return "why" in event ? `${event.type} ${event.why}` : event.type;
}
