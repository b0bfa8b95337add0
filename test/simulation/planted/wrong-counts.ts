import type * as port from "../../../src/engine/port.ts";
import type { Random } from "../../kit/random.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";

/** Every attempt is the first, so a failing item is never given up. */
export const forgetAttempts: MakePlant = () => ({ store: (handle) => new ForgetAttempts(handle) });

class ForgetAttempts extends PassThrough {
  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map((grant) => Object.assign({}, grant, { item: Object.assign({}, grant.item, { attempt: 1 }) }));
  }
}

/** A worker that shuts down gives its items back, and each time an attempt is gone. */
export const countReleases: MakePlant = () => ({ store: (handle) => new CountReleases(handle) });

class CountReleases extends PassThrough {
  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const failure = { message: "given back" };
    return this.inner.settle(
      settlements.map((one) =>
        one.ending.type === "release" ? { ...one, ending: { type: "retry", delayMs: 0, place: "keep", failure } } : one,
      ),
    );
  }
}

/** One settlement in fifty is answered, and forgotten. */
export const forgetSettlements: MakePlant = ({ random }) => ({
  store: (handle) => new ForgetSettlements(handle, random),
});

class ForgetSettlements extends PassThrough {
  readonly #random: Random;

  constructor(inner: port.Engine, random: Random) {
    super(inner);
    this.#random = random;
  }

  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    if (this.#random.chance(0.02)) return Promise.resolve(settlements.map(() => "settled"));
    return this.inner.settle(settlements);
  }
}
