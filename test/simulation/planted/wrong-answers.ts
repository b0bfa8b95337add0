import type * as port from "../../../src/engine/port.ts";
import type { VirtualTime } from "../virtual-time.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";

/** Any number of items may wait for a key, and busy keys are not refused. */
export const ignoreLimits: MakePlant = () => ({ store: (handle) => new IgnoreLimits(handle) });

class IgnoreLimits extends PassThrough {
  override submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const unlimited = { keyLimit: 1_000_000, queueLimit: 1_000_000 };
    return this.inner.submit(
      submissions.map((one) => ({ ...one, ...unlimited, mode: one.mode === "strict" ? "fifo" : one.mode })),
    );
  }
}

/** Delayed items arrive at once. */
export const ignoreDelays: MakePlant = () => ({ store: (handle) => new IgnoreDelays(handle) });

class IgnoreDelays extends PassThrough {
  override submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    return this.inner.submit(submissions.map((submission) => ({ ...submission, delayMs: 0 })));
  }
}

/** Cancelling says that there is nothing to cancel, and does it all the same. */
export const denyCancels: MakePlant = () => ({ store: (handle) => new DenyCancels(handle) });

class DenyCancels extends PassThrough {
  override async cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    await this.inner.cancel(request);
    return "missing";
  }
}

/** A lock is given out although somebody works on its key. */
export const holdAnything: MakePlant = () => ({ store: (handle) => new HoldAnything(handle) });

class HoldAnything extends PassThrough {
  override async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    const lease = await this.inner.hold(request);
    if (lease !== undefined) return lease;
    const { queue, key } = request;
    const keys = await this.inner.keys({ queue, limit: 100 });
    const fence = (keys.find((one) => one.key === key)?.running?.fence ?? 0) + 1;
    return { queue, key, fence, since: { wall: 0, monotonic: 0 }, handle: undefined };
  }
}

/** What is ready is handed out, but those who wait for it are woken late. */
export const wakeLate: MakePlant = ({ time }) => ({ store: (handle) => new WakeLate(handle, time) });

const LATE_MS = 150;

class WakeLate extends PassThrough {
  readonly #time: VirtualTime;

  constructor(inner: port.Engine, time: VirtualTime) {
    super(inner);
    this.#time = time;
  }

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    await new Promise<void>((resolve) => void this.#time.after(LATE_MS, resolve));
    return grants;
  }
}
