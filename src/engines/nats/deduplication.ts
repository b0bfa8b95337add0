/**
 * Submissions with an id. The id is reserved first, then the item is put in its place, then the id says so. Whoever finds an id that
 * is only reserved takes it over with an item of its own, unless that other item is seen to be in its place; of the two items only the one that the id
 * names is ever run.
 */
import { pause } from "../../domain/clock.ts";
import type { Submission, SubmitResult } from "../../engine/port.ts";
import { duplicate, itemOf } from "./accepted.ts";
import { textOf, tokenOf } from "./key-token.ts";
import type { KeyStore } from "./key-store.ts";
import type { Limits } from "./limits.ts";
import type { FoundReceipt, Receipt } from "./receipts.ts";
import { partlyWritten } from "./requests.ts";
import type { KeyItem } from "./state.ts";

/** How long a submission of the same id is given before its reservation is taken over. */
const PENDING_MS = 1_000;
const PENDING_STEP_MS = 20;

export class Deduplication {
  readonly #store: KeyStore;
  readonly #levels: readonly string[];
  readonly #limits: Limits;
  readonly #place: (key: string, submission: Submission, item: KeyItem) => Promise<SubmitResult>;

  /** @param place puts an item whose id is reserved in its place */
  constructor(
    store: KeyStore,
    levels: readonly string[],
    limits: Limits,
    place: (key: string, submission: Submission, item: KeyItem) => Promise<SubmitResult>,
  ) {
    this.#store = store;
    this.#levels = levels;
    this.#limits = limits;
    this.#place = place;
  }

  async accept(key: string, submission: Submission, id: string): Promise<SubmitResult> {
    const { receipts } = this.#store;
    for (;;) {
      const found = await this.#findSettled(id);
      if (found !== undefined && (await this.#isTaken(id, found))) return duplicate(id, found.receipt);
      const refusal = await this.#limits.refusal(key, submission);
      if (refusal !== undefined) return { ok: false, error: refusal };
      const item = itemOf(submission, this.#store, this.#levels);
      const receipt = receipts.of(item, textOf(key));
      const reserved = await receipts.reserve(id, receipt, found?.sequence ?? 0);
      if (reserved === undefined) continue;
      const result = await this.#place(key, submission, item);
      if (!result.ok) {
        await receipts.forget(reserved);
        return result;
      }
      const other = await this.#confirm(id, receipt, reserved).catch(partlyWritten);
      if (other === undefined || other.unique === item.unique) return result;
      if (other.pending === undefined) return duplicate(id, other);
    }
  }

  /** An id that is only reserved belongs to somebody who is about to say more, or who died. A moment tells. */
  async #findSettled(id: string): Promise<FoundReceipt | undefined> {
    const { receipts, clock } = this.#store;
    for (let waited = 0; ; waited += PENDING_STEP_MS) {
      const found = await receipts.find(id);
      if (found?.receipt.pending === undefined || waited >= PENDING_MS) return found;
      await pause(clock, PENDING_STEP_MS);
    }
  }

  /**
   * Whether the id stands for an item that is accepted. If it is only reserved, but its item is what its key carries, that is said in its submitter's place: it may have
   * taken the place of others already (mode latest), and they would be gone for one that never runs.
   */
  async #isTaken(id: string, { receipt: { pending, ...receipt }, sequence }: FoundReceipt): Promise<boolean> {
    if (pending === undefined) return true;
    const { state } = await this.#store.read(tokenOf(receipt.key));
    if (!state.items.some(({ unique }) => unique === receipt.unique)) return false;
    return (await this.#store.receipts.confirm(id, receipt, sequence)) !== undefined;
  }

  /** Says that the item is in its place. Gives what stands under the id instead, if that is not this. */
  async #confirm(id: string, receipt: Receipt, reserved: number): Promise<Receipt | undefined> {
    const { receipts } = this.#store;
    for (let expect = reserved; ;) {
      if ((await receipts.confirm(id, receipt, expect)) !== undefined) return undefined;
      const found = await receipts.find(id);
      // It was so quick that it has ended and been forgotten; or another submission of the same id was faster.
      if (found === undefined || found.receipt.unique !== receipt.unique || found.receipt.pending === undefined)
        return found?.receipt;
      // A follower of the leader may not know yet what refused this.
      expect = found.sequence;
    }
  }
}
