/** Stands between the library and the store, and writes down what was asked and what was answered. */
import { BatonError, type Engine } from "../../src/index.ts";
import type * as port from "../../src/index.ts";
import { PassThrough } from "../../test/pass-through.ts";
import { now } from "../history/clock.ts";
import type { EndedItem, Outcome } from "../history/fact.ts";
import type { Recorder } from "../history/recorder.ts";
import { itemOf } from "./item-of.ts";

export class RecordingEngine extends PassThrough {
  readonly #record: Recorder;
  /** By the name of the lease: the items of its run of which the store has not heard that they ended. */
  readonly #runs = new Map<string, readonly Named[]>();
  #calls = 0;

  constructor(inner: Engine, record: Recorder) {
    super(inner);
    this.#record = record;
  }

  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    this.#calls += 1;
    const call = this.#calls;
    const items = submissions.map(({ payload }) => itemOf(payload));
    for (const [index, { id, key, level }] of submissions.entries()) {
      const sent = { type: "submit-sent" as const, call, item: items[index] ?? "", key, level };
      this.#record(id === undefined ? sent : { ...sent, id });
    }
    try {
      const results = await super.submit(submissions);
      for (const [index, item] of items.entries()) {
        const result = results[index];
        if (result === undefined) continue;
        if (result.ok) {
          const { id, key, level, duplicate } = result.accepted;
          this.#record({ type: "submit", call, item, outcome: "ok", receipt: { id, key, level, duplicate } });
        } else this.#record({ type: "submit", call, item, ...failed(result.error) });
      }
      return results;
    } catch (error) {
      for (const item of items) this.#record({ type: "submit", call, item, ...failed(error) });
      throw error;
    }
  }

  /** Only those are taken back that have an id, which is the item's name. */
  override async cancel(request: port.ItemRequest): Promise<port.CancelResult> {
    const item = request.id;
    this.#record({ type: "cancel-sent", item });
    try {
      const result = await super.cancel(request);
      this.#record({ type: "cancel", item, result });
      return result;
    } catch (error) {
      this.#record({ type: "cancel", item });
      throw error;
    }
  }

  override async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const grants = await super.claim(request);
    for (const grant of grants) this.#granted(grant);
    return grants;
  }

  #granted({ lease, item, behind = [] }: port.Grant): void {
    const { fence, key, since } = lease;
    const first = named(item);
    const covered = behind.map(named);
    this.#runs.set(nameOf(lease), [first, ...covered]);
    const granted = { type: "grant" as const, since: since.monotonic, ...first, key, level: item.level, fence };
    this.#record(covered.length === 0 ? granted : { ...granted, behind: covered });
  }

  override async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const sentAt = now();
    const asked = renewals.map(({ lease, ended = [] }) => {
      const { key, fence } = lease;
      return { type: "renew" as const, sentAt, key, fence, ...this.#ended(lease, ended) };
    });
    try {
      const results = await super.renew(renewals);
      for (const [index, entry] of asked.entries()) {
        const result = results[index];
        const renewal = renewals[index];
        if (result?.ok === true && renewal !== undefined) {
          this.#record({ ...entry, outcome: "ok", since: result.since.monotonic });
          this.#forget(renewal);
        } else this.#record({ ...entry, outcome: "fail" });
      }
      return results;
    } catch (error) {
      const { outcome } = failed(error);
      for (const entry of asked) this.#record({ ...entry, outcome });
      throw error;
    }
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const entries = settlements.map(({ lease, ended = [], ending }) => {
      const { key, fence } = lease;
      const item = this.#runs.get(nameOf(lease))?.find(({ id }) => !ended.some((one) => one.id === id))?.item ?? "";
      return { item, key, fence, ending: ending.type, ...this.#ended(lease, ended) };
    });
    for (const [index, entry] of entries.entries()) {
      const ending = settlements[index]?.ending;
      const delay = ending?.type === "retry" ? { delayMs: ending.delayMs } : {};
      this.#record({ type: "settle-sent", ...entry, ...delay });
    }
    try {
      const results = await super.settle(settlements);
      for (const [index, entry] of entries.entries()) {
        const result = results[index];
        this.#record({ type: "settle", ...entry, outcome: result === undefined || result === "lost" ? "fail" : "ok" });
        const lease = settlements[index]?.lease;
        if (lease !== undefined) this.#runs.delete(nameOf(lease));
        if (typeof result === "object") this.#granted(result);
      }
      return results;
    } catch (error) {
      for (const entry of entries) this.#record({ type: "settle", ...entry, outcome: failed(error).outcome });
      throw error;
    }
  }

  /** By the run's own names. Left out where there is nothing to say. */
  #ended(lease: port.Lease, ended: readonly port.EndedItem[]): { readonly ended?: readonly EndedItem[] } {
    if (ended.length === 0) return {};
    const run = this.#runs.get(nameOf(lease)) ?? [];
    const itemOfId = (id: string): string => run.find((one) => one.id === id)?.item ?? "";
    return { ended: ended.map(({ id, ending }) => ({ item: itemOfId(id), ending: ending.type })) };
  }

  /** The store has heard of these: the next report is about those behind them. */
  #forget({ lease, ended = [] }: port.Renewal): void {
    const left = this.#runs.get(nameOf(lease))?.filter(({ id }) => !ended.some((one) => one.id === id));
    if (left !== undefined) this.#runs.set(nameOf(lease), left);
  }
}

/** Its handle is the engine's own affair, and need not tell it from others. */
function nameOf({ key, fence }: port.Lease): string {
  return `${fence} ${key}`;
}

interface Named {
  readonly item: string;
  readonly id: string;
  readonly attempt: number;
}

function named({ id, attempt, payload }: port.Item): Named {
  return { item: itemOf(payload), id, attempt };
}

function failed(error: unknown): { readonly outcome: Outcome; readonly error: string } {
  // Whatever is no error of Baton's says nothing about what happened.
  if (!(error instanceof BatonError)) return { outcome: "unknown", error: String(error) };
  return {
    outcome: error.code === "OUTCOME_UNKNOWN" || error.code === "CLOSED" ? "unknown" : "fail",
    error: error.code,
  };
}
