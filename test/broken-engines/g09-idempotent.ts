import type { ClaimRequest, Grant, Settlement, SettleResult, Submission, SubmitResult } from "../../src/engine/port.ts";
import { type BrokenEngine, brokenEngine } from "./broken-engine.ts";
import { PassThrough } from "../pass-through.ts";

/** Knows the ids of items that are there, and forgets them with the item. */
class ForgetsIds extends PassThrough {
  readonly #idByFence = new Map<number, string>();
  readonly #forgotten = new Set<string>();

  override async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = await super.claim(request);
    for (const { lease, item } of grants) this.#idByFence.set(lease.fence, item.id);
    return grants;
  }

  override settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    for (const { lease, ending } of settlements) {
      const id = this.#idByFence.get(lease.fence);
      if (ending.type === "done" && id !== undefined) this.#forgotten.add(id);
    }
    return super.settle(settlements);
  }

  override submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    return super.submit(
      submissions.map((submission) => {
        const { id, ...rest } = submission;
        return id !== undefined && this.#forgotten.has(id) ? rest : submission;
      }),
    );
  }
}

export const forgetsIds: BrokenEngine = brokenEngine(
  "G9",
  "forgets an id when its item is done",
  () => (inner) => new ForgetsIds(inner),
);
