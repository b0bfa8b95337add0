/** Stores that do not do with a submission what they say. */
import type * as port from "../../src/index.ts";
import { PassThrough } from "../../test/pass-through.ts";

/** One in so many is accepted and forgotten. */
const DROPS_ONE_IN = 1_000;
/** Places are this far apart in their thousand, so that a short run sees one too, and the rate stays what it is. */
const APART = 125;
const DELAYS_ONE_IN = 8;
/** Long enough for others to come to the same key. In leases. */
const DELAYED_BY = 0.75;

export class DropsSubmissions extends PassThrough {
  #count: number;

  constructor(inner: port.Engine, place: number) {
    super(inner);
    this.#count = DROPS_ONE_IN - place * APART - 1;
  }

  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const kept = submissions.filter(() => {
      this.#count += 1;
      return this.#count % DROPS_ONE_IN !== 0;
    });
    if (kept.length === submissions.length) return await super.submit(submissions);
    const results = kept.length === 0 ? [] : await super.submit(kept);
    return submissions.map((one) => results[kept.indexOf(one)] ?? receiptFor(one));
  }
}

/** Some are accepted at once and stored later: others overtake them. */
export class SwapsOrder extends PassThrough {
  readonly #delayMs: number;
  #count = 0;

  constructor(inner: port.Engine, leaseMs: number) {
    super(inner);
    this.#delayMs = leaseMs * DELAYED_BY;
  }

  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    this.#count += 1;
    if (submissions.length > 1 || this.#count % DELAYS_ONE_IN !== 0) return await super.submit(submissions);
    setTimeout(() => void super.submit(submissions).catch(() => undefined), this.#delayMs);
    return submissions.map(receiptFor);
  }
}

/** An id that comes a second time makes a second item. */
export class AcceptsIdsTwice extends PassThrough {
  readonly #seen = new Set<string>();

  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const anew = submissions.map(({ id, ...rest }) => {
      if (id === undefined) return rest;
      if (this.#seen.has(id)) return rest;
      this.#seen.add(id);
      return { id, ...rest };
    });
    return await super.submit(anew);
  }
}

function receiptFor({ id, key, level }: port.Submission): port.SubmitResult {
  const accepted = { id: id ?? "@never", key, level, at: Date.now(), duplicate: false, replaced: [] };
  return { ok: true, accepted };
}
