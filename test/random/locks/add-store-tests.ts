import { after } from "node:test";
import { systemClock } from "../../../src/domain/clock.ts";
import type { Engine } from "../../../src/engine/port.ts";
import type { Register } from "../../../src/locks/register.ts";
import type { Seeds } from "../../kit/seeds.ts";
import { started } from "../../started.ts";
import { addRandomLockTests } from "./add-random-lock-tests.ts";
import type { LockStore } from "./player.ts";
import { registerStore } from "./register-store.ts";

export interface RunningStore {
  readonly connect: () => Promise<Engine & { readonly register: Register }>;
  readonly stop: () => Promise<void>;
  /** Of those who vanish. */
  readonly leaseMs?: number;
}

/** Each has connections, or a thread, of its own. */
const HANDLES = 2;
/** A loaded machine is slow to look; what never comes is told by the player's patience. */
const SLACK_MS = 15_000;

/** The random scripts on a real store, side by side, so that waiting costs once. */
export function addStoreTests(title: string, start: () => Promise<RunningStore>, seeds: () => Seeds): void {
  const engines: Engine[] = [];
  after(() => Promise.allSettled(engines.map((engine) => engine.close())));
  const running = started(async () => {
    const store = await start();
    const registers: Register[] = [];
    for (let handle = 0; handle < HANDLES; handle += 1) {
      const engine = await store.connect();
      engines.push(engine);
      registers.push(engine.register);
    }
    const { leaseMs = 1_000 } = store;
    const times = { clock: systemClock, leaseMs, slackMs: SLACK_MS };
    // One is told of changes, as the engine's own locks are; one looks with each sign of life.
    const opened = registers.map((register, index) => ({ register, watchesHolds: index % 2 === 0 }));
    const locks: LockStore = registerStore(title, opened, times);
    return { locks, stop: () => store.stop() };
  });
  addRandomLockTests(title, {
    seeds,
    atATime: 20,
    steps: 30,
    mostVanish: 1,
    mostLeases: 0,
    handles: HANDLES,
    open: () => running().locks,
  });
}
