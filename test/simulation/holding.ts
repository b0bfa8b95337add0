import { OutcomeUnknown } from "../../src/domain/errors.ts";
import { leaseLeftMs, leaseMarginMs } from "../../src/domain/lease.ts";
import type { Lease } from "../../src/engine/port.ts";
import { leaseNumber } from "./recording-engine.ts";
import { QUEUE, type SimulatedProcess } from "./simulated-process.ts";

/** Somebody uses the lease on a key as a plain lock: takes it, writes under it while it is certain, lets go. */
export async function holdForAWhile(process: SimulatedProcess, key: string): Promise<void> {
  const { random, settings } = process;
  try {
    await process.queue.levels();
    const { leaseMs } = settings;
    const signal = AbortSignal.abort();
    const lease = await process.engine.hold({ queue: QUEUE, key, worker: process.name, leaseMs, signal });
    if (lease === undefined) return;
    let { since } = lease;
    for (let step = random.between(1, 3); step > 0; step -= 1) {
      await process.sleep(random.next() * leaseMs * 0.5);
      if (leaseLeftMs(process.clock, since, leaseMs, leaseMarginMs(leaseMs)) <= 0) return;
      writeUnder(process, lease);
      if (!random.chance(0.5)) continue;
      const [renewed] = await process.engine.renew([{ lease, leaseMs }]);
      if (renewed?.ok !== true) return;
      ({ since } = renewed);
    }
    if (random.chance(0.8)) await process.engine.settle([{ lease, ending: { type: "release" } }]);
  } catch (error) {
    // Its lease runs out by itself.
    if (!(error instanceof OutcomeUnknown)) throw error;
  }
}

function writeUnder(process: SimulatedProcess, lease: Lease): void {
  const { key, fence } = lease;
  process.log({
    type: "effect",
    lease: leaseNumber(lease),
    key,
    fence,
    guard: "check",
    wall: process.clock.wall(),
  });
}
