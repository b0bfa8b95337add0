import { type Clock, instant } from "../../../src/domain/clock.ts";
import type * as port from "../../../src/engine/port.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";

/** Leases run out in the store while their holders still have half of their time: nobody compares deadlines. */
export const grantTooEarly: MakePlant = () => ({ storeClock: (clock) => atRate(clock, 2) });

/** Two thirds of the time that passes is hidden from the worker, so its local deadline comes much too late. */
export const ignoreDeadline: MakePlant = () => ({ clock: (clock) => atRate(clock, 1 / 3) });

/** Time seems to fly, so the worker throws away work that was done in time. */
export const giveUpTooSoon: MakePlant = () => ({ clock: (clock) => atRate(clock, 8) });

/** A clock that is too fast leaves the wall clock alone: delays are none of its business. */
function atRate(clock: Clock, rate: number): Clock {
  const zero = instant(clock);
  return {
    monotonic: () => zero.monotonic + (clock.monotonic() - zero.monotonic) * rate,
    wall: () => (rate > 1 ? clock.wall() : Math.floor(zero.wall + (clock.wall() - zero.wall) * rate)),
    setTimer: (delayMs, callback) => clock.setTimer(rate > 1 ? delayMs : delayMs / rate, callback),
  };
}

/** Leases are counted from when the reply came instead of from before the request left. */
export const stampLate: MakePlant = () => ({ client: (engine, clock) => new LateStamps(engine, clock) });

class LateStamps extends PassThrough {
  readonly #clock: Clock;

  constructor(inner: port.Engine, clock: Clock) {
    super(inner);
    this.#clock = clock;
  }

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map((grant) =>
      Object.assign({}, grant, { lease: Object.assign({}, grant.lease, { since: instant(this.#clock) }) }),
    );
  }

  override async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const results = await this.inner.renew(renewals);
    const since = instant(this.#clock);
    return results.map((result) => (result.ok ? { ok: true, since, cancelRequested: result.cancelRequested } : result));
  }
}
