/** Stands between the library and the store, and writes down what was asked and what was answered. */
import { BatonError, type Engine } from "../../src/index.ts";
import type * as port from "../../src/index.ts";
import { PassThrough } from "../../test/pass-through.ts";
import { now } from "../history/clock.ts";
import type { Outcome } from "../history/fact.ts";
import type { Recorder } from "../history/recorder.ts";
import { itemOf } from "./item-of.ts";

export class RecordingEngine extends PassThrough {
  readonly #record: Recorder;
  readonly #items = new Map<unknown, string>();
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
    for (const { lease, item } of grants) {
      const { fence, key, since } = lease;
      const { level, attempt, id } = item;
      const name = itemOf(item.payload);
      this.#items.set(lease.handle, name);
      this.#record({ type: "grant", since: since.monotonic, item: name, id, key, level, fence, attempt });
    }
    return grants;
  }

  override async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const sentAt = now();
    try {
      const results = await super.renew(renewals);
      for (const [index, { lease }] of renewals.entries()) {
        const result = results[index];
        const { key, fence } = lease;
        if (result?.ok === true) {
          this.#record({ type: "renew", sentAt, key, fence, outcome: "ok", since: result.since.monotonic });
        } else this.#record({ type: "renew", sentAt, key, fence, outcome: "fail" });
      }
      return results;
    } catch (error) {
      const { outcome } = failed(error);
      for (const { lease } of renewals) {
        this.#record({ type: "renew", sentAt, key: lease.key, fence: lease.fence, outcome });
      }
      throw error;
    }
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const entries = settlements.map(({ lease, ending }) => {
      const { key, fence, handle } = lease;
      return { item: this.#items.get(handle) ?? "", key, fence, ending: ending.type };
    });
    for (const [index, entry] of entries.entries()) {
      const ending = settlements[index]?.ending;
      const delay = ending?.type === "retry" ? { delayMs: ending.delayMs } : {};
      this.#record({ type: "settle-sent", ...entry, ...delay });
    }
    try {
      const results = await super.settle(settlements);
      for (const [index, entry] of entries.entries()) {
        this.#record({ type: "settle", ...entry, outcome: results[index] === "settled" ? "ok" : "fail" });
        this.#items.delete(settlements[index]?.lease.handle);
      }
      return results;
    } catch (error) {
      for (const entry of entries) this.#record({ type: "settle", ...entry, outcome: failed(error).outcome });
      throw error;
    }
  }
}

function failed(error: unknown): { readonly outcome: Outcome; readonly error: string } {
  // Whatever is no error of Baton's says nothing about what happened.
  if (!(error instanceof BatonError)) return { outcome: "unknown", error: String(error) };
  return {
    outcome: error.code === "OUTCOME_UNKNOWN" || error.code === "CLOSED" ? "unknown" : "fail",
    error: error.code,
  };
}
