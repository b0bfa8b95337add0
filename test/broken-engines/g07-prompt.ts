import { setTimeout as sleep } from "node:timers/promises";
import type { ClaimRequest, Grant } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

const POLL_MS = 1_000;

/** Looks for work once a second, instead of being woken. */
class Polls extends PassThrough {
  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const { signal } = request;
    while (!signal.aborted) {
      const oneLook = new AbortController();
      const looking = super.claim({ ...request, signal: oneLook.signal });
      oneLook.abort();
      const grants = await looking;
      if (grants.length > 0) return grants;
      await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
    return [];
  }
}

export const polls: BrokenEngine = brokenEngine("G7", "polls once a second", () => (inner) => new Polls(inner));
