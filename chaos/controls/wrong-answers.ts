/** Stores that give out too much, or say that something is done when it is not. */
import type * as port from "../../src/index.ts";
import { PassThrough } from "../../test/pass-through.ts";

const ONE_IN = 5;

/** Every now and then a key is given out twice. */
export class GivesKeysTwice extends PassThrough {
  #count = 0;

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await super.claim(request);
    const [first] = grants;
    this.#count += 1;
    if (first === undefined || grants.length >= request.max || this.#count % ONE_IN !== 0) return grants;
    return [...grants, { item: first.item, lease: { ...first.lease, fence: first.lease.fence + 0.5 } }];
  }
}

/** Every now and then the end of an item is acknowledged, and forgotten. */
export class ForgetsEndings extends PassThrough {
  #count = 0;

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const done = settlements.filter(({ ending }) => {
      this.#count += 1;
      return ending.type !== "done" || this.#count % ONE_IN !== 0;
    });
    const results = done.length === 0 ? [] : await super.settle(done);
    return settlements.map((one) => results[done.indexOf(one)] ?? "settled");
  }
}
