/** One flaw for each rule of runs: what a lease covers, what a report ends, and what a lost lease leaves behind. */
import type {
  CancelResult,
  ClaimRequest,
  Engine,
  Grant,
  Item,
  ItemReport,
  ItemRequest,
  Lease,
  Renewal,
  RenewResult,
  Settlement,
  SettleResult,
  Submission,
  SubmitResult,
} from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** What all handles of a store know of its leases. */
class Known {
  /** Per key: what was submitted, in order. */
  readonly lines = new Map<string, Item[]>();
  /** Per fence: the ids of its run. */
  readonly runs = new Map<number, readonly string[]>();
  /** Per key: its lease. */
  readonly current = new Map<string, Lease>();
  /** Ids of what a lease covered and did not begin, for all that was reported. */
  readonly covered = new Set<string>();
  /** Reports that named an id, by fence and id. */
  readonly named = new Set<string>();

  note({ lease, item, behind = [] }: Grant): void {
    const ids = [item, ...behind].map(({ id }) => id);
    this.runs.set(lease.fence, ids);
    this.current.set(nameOf(lease), lease);
    for (const id of ids.slice(1)) this.covered.add(id);
  }

  submitted({ queue, key, level, payload }: Submission, id: string): void {
    const line = this.lines.get(nameOf({ queue, key })) ?? [];
    this.lines.set(nameOf({ queue, key }), line);
    line.push({ id, queue, key, level, payload, headers: undefined, submittedAt: 0, attempt: 1 });
  }

  /** What was submitted behind it. */
  behind({ lease, item }: Grant): Item[] {
    const line = this.lines.get(nameOf(lease)) ?? [];
    return line.slice(line.findIndex(({ id }) => id === item.id) + 1);
  }
}

function nameOf({ queue, key }: { readonly queue: string; readonly key: string }): string {
  return JSON.stringify([queue, key]);
}

class KnowsRuns extends PassThrough {
  protected readonly known: Known;

  constructor(inner: Engine, known: Known) {
    super(inner);
    this.known = known;
  }

  override async submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const results = await super.submit(submissions);
    for (const [index, submission] of submissions.entries()) {
      const result = results[index];
      if (result?.ok === true) this.known.submitted(submission, result.accepted.id);
    }
    return results;
  }

  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = await super.claim(request);
    const told = grants.map((grant) => this.disguise(grant, request));
    for (const grant of grants) this.known.note(grant);
    return told;
  }

  protected disguise(grant: Grant, _request: ClaimRequest): Grant {
    return grant;
  }
}

/** Takes whatever stands behind the first item into its run. */
class CoversMore extends KnowsRuns {
  protected override disguise(grant: Grant, { items = 1 }: ClaimRequest): Grant {
    if (!this.mustBeAlone(grant.item)) return grant;
    return { ...grant, behind: this.known.behind(grant).slice(0, items - 1) };
  }

  protected mustBeAlone(_item: Item): boolean {
    return false;
  }
}

class CoversWhatWasTried extends CoversMore {
  protected override mustBeAlone({ attempt, losses = 0 }: Item): boolean {
    return attempt > 1 && losses === 0;
  }
}

class ForgetsAlone extends CoversMore {
  protected override mustBeAlone({ losses = 0 }: Item): boolean {
    return losses > 0;
  }
}

/** Counts an attempt of all that a lease covers. */
class CountsCovered extends KnowsRuns {
  protected override disguise(grant: Grant): Grant {
    const { item } = grant;
    return this.known.covered.has(item.id) ? { ...grant, item: { ...item, attempt: item.attempt + 1 } } : grant;
  }
}

/** Counts the item that runs once for each renewal that says so. */
class CountsRepeats extends KnowsRuns {
  readonly #more = new Map<string, number>();

  override renew(renewals: readonly Renewal[]): Promise<readonly RenewResult[]> {
    for (const { lease, ended = [] } of renewals) {
      const running = this.known.runs.get(lease.fence)?.[ended.length];
      const last = ended.at(-1);
      if (running === undefined || last === undefined) continue;
      const name = `${lease.fence} ${last.id}`;
      if (this.known.named.has(name)) this.#more.set(running, (this.#more.get(running) ?? 0) + 1);
      this.known.named.add(name);
    }
    return super.renew(renewals);
  }

  override async find(request: ItemRequest): Promise<ItemReport | undefined> {
    const report = await super.find(request);
    return report === undefined ? undefined : { ...report, attempt: report.attempt + (this.#more.get(report.id) ?? 0) };
  }
}

/** Ends the item that runs when it hears of the one before it once more. */
class EndsRepeats extends KnowsRuns {
  override async renew(renewals: readonly Renewal[]): Promise<readonly RenewResult[]> {
    const again = renewals.filter(({ lease, ended = [] }) => {
      const name = `${lease.fence} ${ended.at(-1)?.id ?? ""}`;
      const isKnown = this.known.named.has(name);
      this.known.named.add(name);
      return isKnown && ended.length > 0;
    });
    const results = await super.renew(renewals);
    if (again.length > 0) await super.settle(again.map(({ lease }) => ({ lease, ending: { type: "done" } })));
    return results;
  }
}

/** Drops the last item that a run did not come to. */
class ForgetsWhatARunLeft extends KnowsRuns {
  override async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    const results = await super.settle(settlements);
    for (const [index, { lease, ended = [] }] of settlements.entries()) {
      const left = this.known.runs.get(lease.fence)?.slice(ended.length + 1) ?? [];
      const id = left.at(-1);
      if (results[index] === "settled" && id !== undefined) await super.cancel({ queue: lease.queue, id });
    }
    return results;
  }
}

/** Looks for the lease of a run by its key alone. */
class EndsUnderOldLeases extends KnowsRuns {
  override renew(renewals: readonly Renewal[]): Promise<readonly RenewResult[]> {
    return super.renew(renewals.map((one) => this.#current(one)));
  }

  override settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return super.settle(settlements.map((one) => this.#current(one)));
  }

  #current<T extends Renewal | Settlement>(report: T): T {
    const { lease, ended = [] } = report;
    return ended.length === 0 ? report : { ...report, lease: this.known.current.get(nameOf(lease)) ?? lease };
  }
}

/** Settles the last item of a run, and overlooks what ended before it. */
class OverlooksEnded extends PassThrough {
  override settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    return super.settle(settlements.map(({ lease, ending }) => ({ lease, ending })));
  }
}

/** Says that what is covered was cancelled, as if it waited for anybody. */
class CancelsWhatIsCovered extends PassThrough {
  override async cancel(request: ItemRequest): Promise<CancelResult> {
    const report = await super.find(request);
    const result = await super.cancel(request);
    return result === "requested" && report?.state === "waiting" ? "cancelled" : result;
  }
}

/** Replaces what a lease covers by what is newer. */
class ReplacesWhatIsCovered extends KnowsRuns {
  override async submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const results = await super.submit(submissions);
    return results.map((result, index) => {
      const submission = submissions[index];
      if (!result.ok || submission?.mode !== "latest") return result;
      const fence = this.known.current.get(nameOf(submission))?.fence ?? 0;
      const covered = this.known.runs.get(fence)?.slice(1) ?? [];
      return { ok: true, accepted: { ...result.accepted, replaced: [...covered, ...result.accepted.replaced] } };
    });
  }
}

/** Hands out the items of a run in no particular order: here, the last one first. */
class ShufflesRuns extends PassThrough {
  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = await super.claim(request);
    return grants.map((grant) =>
      grant.behind === undefined ? grant : Object.assign({}, grant, { behind: grant.behind.toReversed() }),
    );
  }
}

/** Counts attempts, and does not say which were lost. */
class ForgetsLosses extends PassThrough {
  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = await super.claim(request);
    return grants.map((grant) => {
      const { losses: _losses, ...item } = grant.item;
      return Object.assign({}, grant, { item });
    });
  }
}

/** Goes on with whatever is ready first, and never ends a turn. */
class GoesOnWithAnything extends PassThrough {
  override async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    const results = await super.settle(settlements.map(({ next: _next, ...one }) => one));
    const gone = results.map(async (result, index): Promise<SettleResult> => {
      const { lease, next } = settlements[index] ?? {};
      if (result === "lost" || lease === undefined || next === undefined) return result;
      const { waiting } = (await super.queues({ queue: lease.queue }))[0] ?? { waiting: 0 };
      if (waiting === 0) return result;
      const { signal } = new AbortController();
      const [grant] = await super.claim({ ...next, queue: lease.queue, max: 1, patienceMs: 1_000, signal });
      return grant ?? result;
    });
    return await Promise.all(gone);
  }
}

/** Goes on under the fence that the key has. */
class GoesOnUnderTheOldFence extends PassThrough {
  override async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    const results = await super.settle(settlements);
    return results.map((result, index) => {
      const fence = settlements[index]?.lease.fence ?? 0;
      return typeof result === "object" ? Object.assign({}, result, { lease: { ...result.lease, fence } }) : result;
    });
  }
}

/** Goes on, and does not say that there is more behind the next run. */
class GoesOnOnce extends PassThrough {
  override async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    const results = await super.settle(settlements);
    return results.map((result) => {
      if (typeof result !== "object") return result;
      const { more: _more, ...grant } = result;
      return grant;
    });
  }
}

function knowing(
  guarantee: BrokenEngine["guarantee"],
  flaw: string,
  make: (inner: Engine, known: Known) => Engine,
): BrokenEngine {
  return brokenEngine(guarantee, flaw, () => {
    const known = new Known();
    return (inner) => make(inner, known);
  });
}

export const brokenRuns: readonly BrokenEngine[] = [
  brokenEngine("G8", "goes on while something more urgent is ready", () => (inner) => new GoesOnWithAnything(inner)),
  brokenEngine("G2", "goes on under the fence of before", () => (inner) => new GoesOnUnderTheOldFence(inner)),
  brokenEngine("G5", "goes on once, and says of nothing more", () => (inner) => new GoesOnOnce(inner)),
  knowing("G5", "covers what was tried before", (inner, known) => new CoversWhatWasTried(inner, known)),
  brokenEngine("G5", "shuffles a run", () => (inner) => new ShufflesRuns(inner)),
  knowing("G4", "counts what a lease only covered", (inner, known) => new CountsCovered(inner, known)),
  knowing("G2", "counts an item for each report of it", (inner, known) => new CountsRepeats(inner, known)),
  knowing("G2", "ends the next item when a report is repeated", (inner, known) => new EndsRepeats(inner, known)),
  knowing("G4", "forgets what a run left", (inner, known) => new ForgetsWhatARunLeft(inner, known)),
  brokenEngine("G4", "overlooks what ended before the last item of a run", () => (inner) => new OverlooksEnded(inner)),
  knowing("G2", "ends items of a run under an old lease", (inner, known) => new EndsUnderOldLeases(inner, known)),
  brokenEngine("G4", "lets others cancel what a lease covers", () => (inner) => new CancelsWhatIsCovered(inner)),
  knowing("G4", "replaces what a lease covers", (inner, known) => new ReplacesWhatIsCovered(inner, known)),
  brokenEngine("G11", "forgets that a lease was lost over an item", () => (inner) => new ForgetsLosses(inner)),
  knowing("G11", "makes a run of what a lost lease covered", (inner, known) => new ForgetsAlone(inner, known)),
  knowing("G11", "blames all that a lost lease covered", (inner, known) => new CountsCovered(inner, known)),
];
