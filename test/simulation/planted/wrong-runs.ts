import type * as port from "../../../src/engine/port.ts";
import type { VirtualTime } from "../virtual-time.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";
import { SettleAnyFence } from "./wrong-fences.ts";

/** Knows what each lease covered. Handles share it, as they share a store. */
class Runs {
  readonly #ids = new Map<number, readonly string[]>();

  note({ lease, item, behind = [] }: port.Grant): void {
    this.#ids.set(
      lease.fence,
      [item, ...behind].map(({ id }) => id),
    );
  }

  of({ fence }: port.Lease): readonly string[] {
    return this.#ids.get(fence) ?? [];
  }

  over({ fence }: port.Lease): void {
    this.#ids.delete(fence);
  }

  /** Behind the head of a lease that was never settled. */
  wasCovered(id: string): boolean {
    return [...this.#ids.values()].some((ids) => ids.indexOf(id) > 0);
  }
}

abstract class KnowsRuns extends PassThrough {
  protected readonly known: Runs;

  constructor(inner: port.Engine, known: Runs) {
    super(inner);
    this.known = known;
  }

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    const told = grants.map((grant) => this.disguise(grant));
    for (const grant of grants) this.known.note(grant);
    return told;
  }

  protected disguise(grant: port.Grant): port.Grant {
    return grant;
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const results = await this.inner.settle(settlements);
    for (const [index, { lease }] of settlements.entries()) if (results[index] === "settled") this.known.over(lease);
    return results;
  }
}

function knowing(make: (inner: port.Engine, known: Runs) => port.Engine): MakePlant {
  return () => {
    const known = new Runs();
    return { store: (handle) => make(handle, known) };
  };
}

/** The last item that a run did not come to does not go back to its line. */
export const forgetCovered: MakePlant = knowing((inner, known) => new ForgetCovered(inner, known));

class ForgetCovered extends KnowsRuns {
  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const left = settlements.map(({ lease, ended = [] }) => this.known.of(lease).slice(ended.length + 1));
    const results = await super.settle(settlements);
    for (const [index, { lease }] of settlements.entries()) {
      const id = results[index] === "settled" ? left[index]?.at(-1) : undefined;
      if (id !== undefined) await this.inner.cancel({ queue: lease.queue, id });
    }
    return results;
  }
}

/** A driver hears of an item twice in one run. */
export const repeatInRun: MakePlant = () => ({ client: (engine) => new RepeatInRun(engine) });

class RepeatInRun extends PassThrough {
  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map((grant) => {
      const [next] = grant.behind ?? [];
      return next === undefined ? grant : Object.assign({}, grant, { behind: [next].concat(grant.behind ?? []) });
    });
  }
}

/** The items of a run come as a map gives them, not as they stand in line. */
export const shuffleRuns: MakePlant = () => ({ store: (handle) => new ShuffleRuns(handle) });

class ShuffleRuns extends PassThrough {
  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map((grant) =>
      grant.behind === undefined ? grant : Object.assign({}, grant, { behind: grant.behind.toReversed() }),
    );
  }
}

/** The fence is compared where one item is settled, and not where a run is. */
export const settleRunsOfAnyFence: MakePlant = () => ({ store: (handle) => new SettleRunsOfAnyFence(handle) });

class SettleRunsOfAnyFence extends SettleAnyFence {
  protected override async current(lease: port.Lease, isRun: boolean): Promise<port.Lease> {
    return isRun ? await super.current(lease, isRun) : lease;
  }
}

/** What a lease covers is cancelled as if it waited; but its holder has it already. */
export const cancelCovered: MakePlant = () => ({ store: (handle) => new CancelCovered(handle) });

class CancelCovered extends PassThrough {
  override async cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    const report = await this.inner.find(request);
    const result = await this.inner.cancel(request);
    return report?.state === "waiting" && result === "requested" ? "cancelled" : result;
  }
}

/** A lost lease counts as lost for all that it covered. */
export const blameLosses: MakePlant = knowing((inner, known) => new BlameLosses(inner, known));

class BlameLosses extends KnowsRuns {
  protected override disguise(grant: port.Grant): port.Grant {
    const { item } = grant;
    return this.known.wasCovered(item.id) ? { ...grant, item: { ...item, losses: (item.losses ?? 0) + 1 } } : grant;
  }
}

/** A lost lease costs all that it covered an attempt. */
export const blameAttempts: MakePlant = knowing((inner, known) => new BlameAttempts(inner, known));

class BlameAttempts extends KnowsRuns {
  protected override disguise(grant: port.Grant): port.Grant {
    const { item } = grant;
    return this.known.wasCovered(item.id) ? { ...grant, item: { ...item, attempt: item.attempt + 1 } } : grant;
  }
}

/** Nobody remembers that an item has lost its lease before. */
export const forgetLosses: MakePlant = () => ({ store: (handle) => new ForgetLosses(handle) });

/** A worker does not mind what its item did to others. */
export const ignoreLosses: MakePlant = () => ({ client: (engine) => new ForgetLosses(engine) });

class ForgetLosses extends PassThrough {
  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map((grant) => {
      const { losses: _losses, ...item } = grant.item;
      return Object.assign({}, grant, { item });
    });
  }
}

const TOO_LONG_MS = 80;

/** A worker goes on with its run for longer than it may, by a clock reading that is too young. */
export const runTooLong: MakePlant = () => ({ client: (engine) => new RunTooLong(engine) });

class RunTooLong extends PassThrough {
  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await this.inner.claim(request);
    return grants.map((grant) => {
      const { since } = grant.lease;
      if (grant.behind === undefined) return grant;
      const later = { wall: since.wall, monotonic: since.monotonic + TOO_LONG_MS };
      return Object.assign({}, grant, { lease: Object.assign({}, grant.lease, { since: later }) });
    });
  }
}

/** A driver renews, and does not pass on what has ended. */
export const dropReports: MakePlant = () => ({ client: (engine) => new DropReports(engine) });

class DropReports extends PassThrough {
  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const silent = renewals.map(({ lease, leaseMs, progress }) =>
      progress === undefined ? { lease, leaseMs } : { lease, leaseMs, progress },
    );
    return this.inner.renew(silent);
  }
}

/** Keys that were fetched ahead are kept, in the hope of a free slot. */
export const keepTooLong: MakePlant = ({ time }) => ({ client: (engine) => new KeepTooLong(engine, time) });

class KeepTooLong extends PassThrough {
  readonly #time: VirtualTime;

  constructor(inner: port.Engine, time: VirtualTime) {
    super(inner);
    this.#time = time;
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const isKept = settlements.every(({ ending }) => ending.type === "release");
    if (isKept) await new Promise<void>((resolve) => void this.#time.after(TOO_LONG_MS, resolve));
    return this.inner.settle(settlements);
  }
}
