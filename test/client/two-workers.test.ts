import assert from "node:assert/strict";
import { test } from "node:test";
import { Baton } from "../../src/client/baton.ts";
import type { Engine, Grant } from "../../src/index.ts";
import type * as port from "../../src/engine/port.ts";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import { ManualClock } from "../manual-clock.ts";
import { PassThrough } from "../pass-through.ts";

const SLOTS = 4;
const KEYS = 300;
/** How long a key may be under a lease, at most, before its handler begins. */
const KEEP_MS = 20;

/** Watches which keys its worker has, and has not begun. */
class Watched extends PassThrough {
  readonly unbegun: Map<string, number> = new Map();
  longestKeptMs = 0;
  mostUnbegun = 0;
  begun = 0;
  readonly items: number[] = [];
  readonly #clock: ManualClock;

  constructor(inner: Engine, clock: ManualClock) {
    super(inner);
    this.#clock = clock;
  }

  begin(key: string): void {
    this.begun += 1;
    this.#noLonger(key);
  }

  /** Time passes: what is not begun now is kept. */
  look(): void {
    this.mostUnbegun = Math.max(this.mostUnbegun, this.unbegun.size);
  }

  #noLonger(key: string): void {
    const since = this.unbegun.get(key);
    this.unbegun.delete(key);
    if (since !== undefined) this.longestKeptMs = Math.max(this.longestKeptMs, this.#clock.monotonic() - since);
  }

  override async claim(request: port.ClaimRequest): Promise<readonly Grant[]> {
    this.items.push(request.items ?? 1);
    const grants = await super.claim(request);
    for (const { lease } of grants) this.unbegun.set(lease.key, this.#clock.monotonic());
    return grants;
  }

  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    for (const { lease } of settlements) this.#noLonger(lease.key);
    return super.settle(settlements);
  }
}

/** Two workers of one store, whose handlers take so long, until all is done. */
async function workOff(firstMs: (item: number) => number, secondMs: number): Promise<readonly [Watched, Watched]> {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const start = async (takesMs: (item: number) => number): Promise<Watched> => {
    const engine = new Watched(store.connect(), clock);
    const cars = new Baton(engine, { clock, random: () => 0.5 }).queue("cars");
    const handler = ({ key }: { readonly key: string }): Promise<void> => {
      engine.begin(key);
      const ms = takesMs(engine.begun);
      return new Promise((resolve) => clock.setTimer(ms, resolve));
    };
    const worker = cars.work(handler, { concurrency: SLOTS });
    await clock.pass(0);
    stops.push(() => worker.stop({ grace: 0 }));
    return engine;
  };
  const stops: (() => Promise<unknown>)[] = [];
  const engines = [await start(firstMs), await start(() => secondMs)] as const;
  const cars = new Baton(store.connect(), { clock }).queue("cars");
  const all = Array.from({ length: KEYS * 2 }, (_, item) => ({ key: `car${item % KEYS}`, payload: null }));
  await cars.submitMany(all);
  for (let ms = 0; ms < 1_000; ms += 1) {
    await clock.pass(1);
    for (const engine of engines) engine.look();
  }
  const { running, waiting } = await cars.status();
  assert.deepEqual([running, waiting], [0, 0], "all is done");
  for (const stop of stops) await stop();
  return engines;
}

test("a worker whose handler takes 5 ms keeps no key from an idle one, and a quick one for 20 ms at most", async () => {
  const [slow, quick] = await workOff(() => 5, 1);
  assert.equal(slow.mostUnbegun, 0, "the slow worker begins each key as soon as it has it");
  assert.deepEqual(new Set(slow.items), new Set([1]), "and takes one item at a time");
  assert.ok(quick.mostUnbegun > SLOTS, "the quick worker is never without a key");
  assert.ok(quick.longestKeptMs <= KEEP_MS, `it keeps a key for ${quick.longestKeptMs} ms`);
  assert.ok(quick.begun > 3 * slow.begun, `the quick one begins ${quick.begun} items, the slow one ${slow.begun}`);
});

test("a worker that becomes slow again and again gives back in time what it cannot begin", async () => {
  const [changing] = await workOff((item) => (item % 100 < 60 ? 1 : 30), 8);
  assert.ok(changing.mostUnbegun > SLOTS, "it keeps keys while it is quick");
  assert.ok(changing.longestKeptMs <= KEEP_MS, `a key waits for ${changing.longestKeptMs} ms`);
});
