import type { Clock, Instant } from "../../../../src/domain/clock.ts";
import { encodePayload } from "../../../../src/domain/payload.ts";
import type { Grant } from "../../../../src/engine/port.ts";
import { HeldItem } from "../../../../src/worker/held-item.ts";

/** As a store gives it, with its time counted from `since`. */
export function grant(key: string, since: Instant, attempt = 1): Grant {
  const lease = { queue: "cars", key, fence: 7, since, handle: undefined };
  const item = {
    id: key,
    queue: "cars",
    key,
    level: "normal",
    payload: encodePayload(null),
    headers: undefined,
    submittedAt: 0,
    attempt,
  };
  return { lease, item };
}

export function agoInstant(clock: Clock, agoMs: number): Instant {
  return { monotonic: clock.monotonic() - agoMs, wall: clock.wall() - agoMs };
}

export function grantedRun(key: string, since: Instant, leaseMs: number, clock: Clock): HeldItem {
  return new HeldItem(grant(key, since), leaseMs, clock, () => undefined);
}
