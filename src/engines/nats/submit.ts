/**
 * Accepts items. An item for an idle key is one write: the key becomes ready with the item in it. An item for a busy key is
 * one write too: it joins the line, on condition that the key stands as this process last saw it.
 */
import type { Submission, SubmitResult } from "../../engine/port.ts";
import { acceptedAs, itemOf } from "./accepted.ts";
import { asError } from "./as-error.ts";
import type { Counts } from "./counts.ts";
import { Deduplication } from "./deduplication.ts";
import { Joining } from "./joining.ts";
import { Joint } from "./joint.ts";
import { textOf, tokenOf } from "./key-token.ts";
import type { KeyStore, Written } from "./key-store.ts";
import { Limits } from "./limits.ts";
import { assignedId } from "./receipts.ts";
import { Remembered } from "./remembered.ts";
import { replaceWaiting } from "./replacement.ts";
import { partlyWritten } from "./requests.ts";
import { addTo } from "./sent.ts";
import type { KeyItem, Seen } from "./state.ts";

/** Items of one key that are on their way at once. */
const MOST_TOGETHER = 256;

export interface Arrival {
  readonly item: KeyItem;
  readonly front: boolean;
}

export class Submitter {
  readonly #store: KeyStore;
  readonly #levels: readonly string[];
  /** Submissions of one key take effect one after the other. */
  readonly #lanes = new Map<string, Promise<unknown>>();
  /** Keys whose first message is on its way, with who waits for it. */
  readonly #fresh = new Map<string, PromiseWithResolvers<void> | undefined>();
  readonly #startHere: (key: string, item: KeyItem) => Promise<Seen | undefined> | undefined;
  /** How many of those keys are started by that message. */
  #startingHere = 0;
  /** What this process wrote itself spares it a look. */
  readonly #remembered = new Remembered();
  readonly #limits: Limits;
  readonly #joining: Joining;
  readonly #deduplication: Deduplication;

  /** @param startHere starts an item of an idle key by the write that brings it, if somebody here waits for one */
  constructor(
    store: KeyStore,
    counts: Counts,
    queue: string,
    levels: readonly string[],
    startHere: (key: string, item: KeyItem) => Promise<Seen | undefined> | undefined,
  ) {
    this.#store = store;
    this.#startHere = startHere;
    this.#levels = levels;
    this.#limits = new Limits(store, counts, queue, levels);
    this.#joining = new Joining(store, queue, this.#remembered);
    this.#deduplication = new Deduplication(store, levels, this.#limits, (key, submission, item) =>
      this.#place(key, submission, item),
    );
  }

  /** One alone, by one message and one promise. Whatever takes more than that, and may fail, is `explained`. */
  submitOne(
    submission: Submission,
    explained: (work: () => Promise<readonly SubmitResult[]>) => Promise<readonly SubmitResult[]>,
  ): Promise<readonly SubmitResult[]> {
    return new Promise((resolve) => {
      const answer = (result: SubmitResult | Promise<SubmitResult>): void =>
        resolve(result instanceof Promise ? explained(() => result.then(alone)) : [result]);
      if (!this.#submitQuickly(tokenOf(submission.key), submission, answer))
        resolve(explained(() => this.submit([submission])));
    });
  }

  /** Results in the order of the submissions. */
  async submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const results: SubmitResult[] = [];
    const lanes = new Map<string, { readonly index: number; readonly submission: Submission }[]>();
    const quick = new Joint();
    for (const [index, submission] of submissions.entries()) {
      const key = tokenOf(submission.key);
      const answer = (result: SubmitResult | Promise<SubmitResult>): void =>
        quick.take(result, (value) => (results[index] = value));
      if (!lanes.has(submission.key) && this.#submitQuickly(key, submission, answer)) {
        quick.expect();
        continue;
      }
      const lane = lanes.get(submission.key);
      if (lane === undefined) lanes.set(submission.key, [{ index, submission }]);
      else lane.push({ index, submission });
    }
    const begun = Array.from(lanes, async ([name, entries]) => {
      const key = tokenOf(name);
      const [only] = entries;
      if (entries.length === 1 && only !== undefined) {
        results[only.index] = await this.#inLane(key, () => this.#acceptOne(key, only.submission));
        return;
      }
      const own = entries.map(({ submission }) => submission);
      const answers = await this.#inLane(key, () => this.#accept(key, own));
      for (const [at, { index }] of entries.entries()) {
        const answer = answers[at];
        if (answer !== undefined) results[index] = answer;
      }
    });
    const lost = (await Promise.allSettled([...begun, quick.all])).find((one) => one.status === "rejected");
    if (lost === undefined) return results;
    const error = asError(lost.reason);
    // Of several some may be in their places.
    return submissions.length > 1 ? partlyWritten(error) : Promise.reject(error);
  }

  /**
   * An item that is accepted already comes to its key: it was delayed, or dead.
   * @param isWanted asked when its turn has come, and before every further try: false if somebody else has brought it there
   */
  async arrive(key: string, { item, front }: Arrival, isWanted?: () => Promise<boolean>): Promise<void> {
    await this.#inLane(key, () => this.#joining.join(key, item, front, false, isWanted));
  }

  /** One message and no promise, if the key stands as this process believes. False: it takes more than that, and nothing was done. */
  #submitQuickly(
    key: string,
    submission: Submission,
    answer: (result: SubmitResult | Promise<SubmitResult>) => void,
  ): boolean {
    if (!this.#limits.isPlain(submission) || this.#lanes.has(key) || this.#fresh.has(key)) return false;
    // Of a key that this process knows nothing of, it is most likely that it is idle.
    const sent = this.#remembered.peek(key);
    if (sent === "known") return false;
    const item = itemOf(submission, this.#store, this.#levels);
    const next = sent === undefined ? undefined : addTo(sent, [item], this.#store.nonce());
    if (sent !== undefined && (next === undefined || !this.#limits.useAllowance(key, 1))) return false;
    const begun = sent === undefined ? this.#beginHere(key, item) : undefined;
    this.#fresh.set(key, undefined);
    if (begun !== undefined) {
      answer(this.#goOn(key, submission, item, begun, true));
      return true;
    }
    const heard = (written: Written): void => {
      if (written === undefined || written instanceof Promise) {
        answer(this.#goOn(key, submission, item, written));
        return;
      }
      this.#remembered.setSent(key, written);
      this.#endFresh(key);
      answer(acceptedAs(key, submission.key, item, this.#levels));
    };
    if (sent === undefined || next === undefined) this.#store.begin(key, item, heard);
    else this.#store.extend(key, sent, next, heard);
    return true;
  }

  /** Undefined: it has to become ready first. So it is while something that was submitted before is on its way to do so. */
  #beginHere(key: string, item: KeyItem): Promise<Seen | undefined> | undefined {
    if (this.#lanes.size > 0 || this.#fresh.size > this.#startingHere) return undefined;
    const begun = this.#startHere(key, item);
    if (begun === undefined) return undefined;
    this.#startingHere += 1;
    const over = (): void => void (this.#startingHere -= 1);
    begun.then(over, over);
    return begun;
  }

  /**
   * The key does not stand as it was believed, or the reply was lost; or it was started here, and will most likely be idle again
   * before the next item comes: then there is no use in remembering it.
   */
  async #goOn(
    key: string,
    submission: Submission,
    item: KeyItem,
    written: Promise<Seen | undefined> | undefined,
    isHere = false,
  ): Promise<SubmitResult> {
    try {
      this.#remembered.delete(key);
      const seen = await written;
      if (seen === undefined) return await this.#joinBusy(key, submission, item);
      if (!isHere) this.#remembered.set(key, seen);
      return acceptedAs(key, textOf(key), item, this.#levels);
    } finally {
      this.#endFresh(key);
    }
  }

  /** A key that was believed to be idle is not: it has a line, which may be full. */
  async #joinBusy(key: string, submission: Submission, item: KeyItem): Promise<SubmitResult> {
    const refusal = this.#limits.useAllowance(key, 1) ? undefined : await this.#limits.refusal(key, submission);
    return refusal === undefined ? await this.#joined(key, item, false) : { ok: false, error: refusal };
  }

  #endFresh(key: string): void {
    const waiting = this.#fresh.get(key);
    this.#fresh.delete(key);
    waiting?.resolve();
  }

  async #inLane<T>(key: string, work: () => Promise<T>): Promise<T> {
    const fresh = this.#fresh.has(key) ? (this.#fresh.get(key) ?? Promise.withResolvers<void>()) : undefined;
    if (fresh !== undefined) this.#fresh.set(key, fresh);
    const before = this.#lanes.get(key) ?? fresh?.promise;
    const mine = before === undefined ? work() : before.then(work, work);
    this.#lanes.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#lanes.get(key) === mine) this.#lanes.delete(key);
    }
  }

  async #accept(key: string, submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const results: SubmitResult[] = [];
    for (let at = 0; at < submissions.length;) {
      const together = this.#together(submissions.slice(at, at + MOST_TOGETHER));
      if (together.length > 1) {
        const accepted = await this.#joinTogether(key, together);
        results.push(...accepted);
        at += accepted.length;
        if (accepted.length > 0) continue;
      }
      const submission = submissions[at];
      if (submission !== undefined) results.push(await this.#acceptOne(key, submission));
      at += 1;
    }
    return results;
  }

  /** The first few that can join a line at once: nothing has to be looked up for them. */
  #together(submissions: readonly Submission[]): readonly Submission[] {
    const end = submissions.findIndex((submission) => !this.#limits.isPlain(submission));
    return end === -1 ? submissions : submissions.slice(0, end);
  }

  /** Those of a run of submissions that could join at once; the rest is left for one by one. */
  async #joinTogether(key: string, submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    if (!(await this.#limits.hasRoom(key, submissions.length, submissions[0]))) return [];
    const items = submissions.map((submission) => itemOf(submission, this.#store, this.#levels));
    const isAll = await this.#joining.extend(key, items);
    const count = isAll ? items.length : await this.#joining.joinTogether(key, items);
    return items.slice(0, count).map((item) => acceptedAs(key, textOf(key), item, this.#levels));
  }

  async #acceptOne(key: string, submission: Submission): Promise<SubmitResult> {
    const { id } = submission;
    if (this.#limits.isPlain(submission) && this.#limits.useAllowance(key, 1)) {
      const item = itemOf(submission, this.#store, this.#levels);
      return (await this.#joining.extend(key, [item]))
        ? acceptedAs(key, textOf(key), item, this.#levels)
        : await this.#joined(key, item, false);
    }
    if (id !== undefined) return await this.#deduplication.accept(key, submission, id);
    const refusal = await this.#limits.refusal(key, submission);
    if (refusal !== undefined) return { ok: false, error: refusal };
    return await this.#place(key, submission, itemOf(submission, this.#store, this.#levels));
  }

  async #place(key: string, submission: Submission, item: KeyItem): Promise<SubmitResult> {
    const { mode, delayMs } = submission;
    const now = this.#store.clock.wall();
    const replaced =
      mode === "latest"
        ? await replaceWaiting(this.#store, this.#remembered, key, delayMs > 0 ? undefined : item, now).catch(
            partlyWritten,
          )
        : [];
    if (delayMs > 0) {
      const named = { ...item, id: item.id ?? assignedId(key, item.unique) };
      const delaying = this.#store.receipts.delay(key, named, item.submittedAt + delayMs, false);
      await (mode === "latest" ? delaying.catch(partlyWritten) : delaying);
      return acceptedAs(key, textOf(key), named, this.#levels, replaced);
    }
    if (mode === "latest") return acceptedAs(key, textOf(key), item, this.#levels, replaced);
    return await this.#joined(key, item, mode === "strict");
  }

  async #joined(key: string, item: KeyItem, strict: boolean): Promise<SubmitResult> {
    const error = await this.#joining.join(key, item, false, strict);
    return error === undefined ? acceptedAs(key, textOf(key), item, this.#levels) : { ok: false, error };
  }
}

function alone(result: SubmitResult): readonly SubmitResult[] {
  return [result];
}
