import type { ClaimRequest, Grant, Settlement, SettleResult } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Hands out one key of a queue at a time: whoever holds the first key holds up all others. */
class OneAtATime extends PassThrough {
  readonly #inWork = new Map<string, number>();

  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    if (this.#inWork.has(request.queue)) return await untilAborted(request.signal);
    const grants = await super.claim({ ...request, max: 1 });
    for (const { lease } of grants) this.#inWork.set(lease.queue, lease.fence);
    return grants;
  }

  override async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    for (const { lease } of settlements) {
      if (this.#inWork.get(lease.queue) === lease.fence) this.#inWork.delete(lease.queue);
    }
    return await super.settle(settlements);
  }
}

async function untilAborted(signal: AbortSignal): Promise<readonly Grant[]> {
  const { promise, resolve } = Promise.withResolvers<readonly Grant[]>();
  signal.addEventListener("abort", () => resolve([]), { once: true });
  return await promise;
}

export const oneAtATime: BrokenEngine = brokenEngine(
  "G6",
  "works on one key at a time",
  () => (inner) => new OneAtATime(inner),
);
