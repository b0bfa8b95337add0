/**
 * Accepts items. An item for an idle key is one write: the key becomes ready with the item in it. An item for a busy key is
 * one write too: it joins the line, on condition that the key stands as this process last saw it.
 */
import { pause } from "../../domain/clock.ts";
import { type BatonError, InvalidInput, KeyBusy, KeyFull, QueueFull } from "../../domain/errors.ts";
import type { Accepted, Submission, SubmitResult } from "../../engine/port.ts";
import { asError } from "./as-error.ts";
import type { Counts } from "./counts.ts";
import { Joint } from "./joint.ts";
import { textOf, tokenOf } from "./key-token.ts";
import type { KeyStore, Written } from "./key-store.ts";
import { assignedId, type FoundReceipt, itemId, type Receipt } from "./receipts.ts";
import { Remembered } from "./remembered.ts";
import { ended, free, join, lifts, NO_HEADS, STAYS_ANNOUNCED, takeAll, totalOf } from "./rules.ts";
import { addTo, type Sent } from "./sent.ts";
import { type KeyItem, type KeyState, type Seen, UNSEEN, type Waiting } from "./state.ts";

/** Keys of which this process remembers how much may be added. */
const MOST_ALLOWANCES = 20_000;
/** How long a submission of the same id is given before its reservation is taken over. */
const PENDING_MS = 1_000;
const PENDING_STEP_MS = 20;
/** Items of one key that are on their way at once. */
const MOST_TOGETHER = 256;
/** Beyond this many, what a key or queue holds is not counted before every item. */
const EXACT_BELOW = 1_000;

const NONE: readonly string[] = [];

export interface Arrival {
  readonly item: KeyItem;
  readonly front: boolean;
}

export class Submitter {
  readonly #store: KeyStore;
  readonly #counts: Counts;
  readonly #queue: string;
  readonly #levels: readonly string[];
  /** Submissions of one key take effect one after the other. */
  readonly #lanes = new Map<string, Promise<unknown>>();
  /** Keys whose first message is on its way, with who waits for it. */
  readonly #fresh = new Map<string, PromiseWithResolvers<void> | undefined>();
  /** What this process wrote itself spares it a look. */
  readonly #remembered = new Remembered();
  /** Per key: items that may be added before its line is counted again. */
  readonly #allowance = new Map<string, number>();

  constructor(store: KeyStore, counts: Counts, queue: string, levels: readonly string[]) {
    this.#store = store;
    this.#counts = counts;
    this.#queue = queue;
    this.#levels = levels;
  }

  /** Results in the order of the submissions. */
  submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const [only] = submissions;
    if (only === undefined || submissions.length > 1) return this.#submitMany(submissions);
    return new Promise((resolve) => {
      const answer = (result: SubmitResult | Promise<SubmitResult>): void =>
        resolve(result instanceof Promise ? result.then(alone) : [result]);
      if (!this.#submitQuickly(tokenOf(only.key), only, answer)) resolve(this.#submitMany(submissions));
    });
  }

  async #submitMany(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
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
    if (lost !== undefined) throw asError(lost.reason);
    return results;
  }

  /** An item that is accepted already comes to its key: it was delayed, or dead. */
  async arrive(key: string, arrival: Arrival): Promise<void> {
    await this.#inLane(key, () => this.#join(key, arrival.item, arrival.front));
  }

  /** One message and no promise, if the key stands as this process believes. False: it takes more than that, and nothing was done. */
  #submitQuickly(
    key: string,
    submission: Submission,
    answer: (result: SubmitResult | Promise<SubmitResult>) => void,
  ): boolean {
    if (!this.#isPlain(submission) || this.#lanes.has(key) || this.#fresh.has(key)) return false;
    // Of a key that this process knows nothing of, it is most likely that it is idle.
    const sent = this.#remembered.peek(key);
    if (sent === "known") return false;
    const item = this.#itemOf(submission);
    const next = sent === undefined ? undefined : addTo(sent, [item], this.#store.nonce());
    if (sent !== undefined && (next === undefined || !this.#useAllowance(key, 1))) return false;
    this.#fresh.set(key, undefined);
    const heard = (written: Written): void => {
      if (written === undefined || written instanceof Promise) {
        answer(this.#goOn(key, item, written));
        return;
      }
      this.#remembered.setSent(key, written);
      this.#endFresh(key);
      answer(this.#accepted(key, submission.key, item, NONE));
    };
    if (sent === undefined || next === undefined) this.#store.begin(key, item, heard);
    else this.#store.extend(key, sent, next, heard);
    return true;
  }

  /** The key does not stand as it was believed, or the reply was lost. */
  async #goOn(key: string, item: KeyItem, written: Promise<Seen | undefined> | undefined): Promise<SubmitResult> {
    try {
      this.#remembered.delete(key);
      const seen = await written;
      if (seen === undefined) return await this.#joined(key, item, false);
      this.#remembered.set(key, seen);
      return this.#accepted(key, textOf(key), item, NONE);
    } finally {
      this.#endFresh(key);
    }
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

  /** Most are: nothing has to be looked up for them. */
  #isPlain({ id, mode, delayMs, keyLimit, queueLimit, keepMs, level }: Submission): boolean {
    return (
      id === undefined &&
      keepMs === 0 &&
      mode === "fifo" &&
      delayMs === 0 &&
      keyLimit > EXACT_BELOW &&
      queueLimit > EXACT_BELOW &&
      this.#levels.includes(level) &&
      this.#counts.isFarFrom(queueLimit)
    );
  }

  /** The first few that can join a line at once: nothing has to be looked up for them. */
  #together(submissions: readonly Submission[]): readonly Submission[] {
    const end = submissions.findIndex((submission) => !this.#isPlain(submission));
    return end === -1 ? submissions : submissions.slice(0, end);
  }

  /** Those of a run of submissions that could join at once; the rest is left for one by one. */
  async #joinTogether(key: string, submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    if (!(await this.#hasRoom(key, submissions.length, submissions[0]))) return [];
    const items = submissions.map((submission) => this.#itemOf(submission));
    if (await this.#extend(key, items)) return items.map((item) => this.#accepted(key, textOf(key), item, NONE));
    const seen = this.#remembered.get(key) ?? UNSEEN;
    const carried = this.#carry(seen.state, items);
    const count =
      carried.count > 0 ? await this.#writeTogether(key, seen, carried) : await this.#appendTogether(key, seen, items);
    return items.slice(0, count).map((item) => this.#accepted(key, textOf(key), item, []));
  }

  /** Adds items to a key that stands as this process sent it. False: it does not, or they do not fit. */
  async #extend(key: string, items: readonly KeyItem[]): Promise<boolean> {
    const sent = this.#remembered.peek(key);
    if (sent === undefined || sent === "known") return false;
    const next = addTo(sent, items, this.#store.nonce());
    if (next === undefined) return false;
    const written = await new Promise<Sent | Seen | undefined>((resolve) =>
      this.#store.extend(key, sent, next, resolve),
    );
    if (written === undefined) this.#remembered.delete(key);
    else if ("data" in written) this.#remembered.setSent(key, written);
    else this.#remembered.set(key, written);
    return written !== undefined;
  }

  /** As many items as the key's own state can take. */
  #carry(state: KeyState, items: readonly KeyItem[]): { readonly state: KeyState; readonly count: number } {
    const { levels, clock, room } = this.#store;
    const fresh = state.kind === "idle";
    let next = state;
    let count = 0;
    for (const item of items) {
      const joining = join(next, item, false, levels, clock.wall(), room - totalOf(next));
      if (joining.type !== "write" || !joining.state.items.includes(item)) break;
      // What is not written yet has not been announced either.
      next = fresh ? { ...joining.state, announced: 0 } : joining.state;
      count += 1;
    }
    return { state: next, count };
  }

  async #writeTogether(
    key: string,
    seen: Seen,
    { state, count }: { readonly state: KeyState; readonly count: number },
  ): Promise<number> {
    const written = await this.#write(key, seen, state);
    if (written === undefined) this.#remembered.delete(key);
    else this.#remembered.set(key, written);
    return written === undefined ? 0 : count;
  }

  async #appendTogether(key: string, seen: Seen, items: readonly KeyItem[]): Promise<number> {
    // A replicated stream refuses a second condition on a key while the first is on its way.
    if (this.#store.js.isReplicated(this.#store.subjects.stream)) return 0;
    const end = items.findIndex(
      (item) =>
        lifts(seen.state, item) ||
        join(seen.state, item, false, this.#store.levels, this.#store.clock.wall(), 0).type !== "append",
    );
    const joining = end === -1 ? items : items.slice(0, end);
    const places = await Promise.all(joining.map((item) => this.#store.append(key, seen, item)));
    const refused = places.indexOf(undefined);
    if (refused === -1) return joining.length;
    this.#remembered.delete(key);
    // Once the key has changed, every later one was refused too: the order is kept.
    return refused;
  }

  async #acceptOne(key: string, submission: Submission): Promise<SubmitResult> {
    const { id } = submission;
    if (this.#isPlain(submission) && (!this.#remembered.has(key) || this.#useAllowance(key, 1))) {
      const item = this.#itemOf(submission);
      return (await this.#extend(key, [item]))
        ? this.#accepted(key, textOf(key), item, NONE)
        : await this.#joined(key, item, false);
    }
    if (id !== undefined) return await this.#acceptWithId(key, submission, id);
    const refusal = await this.#refusal(key, submission);
    if (refusal !== undefined) return { ok: false, error: refusal };
    return await this.#place(key, submission, this.#itemOf(submission));
  }

  /**
   * The id is reserved first, then the item is put in its place, then the id says so. Whoever finds an id that is only
   * reserved takes it over with an item of its own; of the two items only the one that the id names is ever run.
   */
  async #acceptWithId(key: string, submission: Submission, id: string): Promise<SubmitResult> {
    const { receipts } = this.#store;
    for (;;) {
      const found = await this.#findSettled(id);
      if (found !== undefined && found.receipt.pending === undefined) return duplicate(id, found.receipt);
      const refusal = await this.#refusal(key, submission);
      if (refusal !== undefined) return { ok: false, error: refusal };
      const item = this.#itemOf(submission);
      const receipt = receipts.of(item, textOf(key));
      const reserved = await receipts.reserve(id, receipt, found?.sequence ?? 0);
      if (reserved === undefined) continue;
      const result = await this.#place(key, submission, item);
      if (!result.ok) {
        await receipts.forget(reserved);
        return result;
      }
      const other = await this.#confirm(id, receipt, reserved);
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

  async #place(key: string, submission: Submission, item: KeyItem): Promise<SubmitResult> {
    const { mode, delayMs } = submission;
    const now = this.#store.clock.wall();
    const replaced = mode === "latest" ? await this.#replace(key, delayMs > 0 ? undefined : item, now) : [];
    if (delayMs > 0) {
      const named = { ...item, id: item.id ?? assignedId(key, item.unique) };
      await this.#store.receipts.delay(key, named, item.submittedAt + delayMs, false);
      return this.#accepted(key, textOf(key), named, replaced);
    }
    if (mode === "latest") return this.#accepted(key, textOf(key), item, replaced);
    return await this.#joined(key, item, mode === "strict");
  }

  async #joined(key: string, item: KeyItem, strict: boolean): Promise<SubmitResult> {
    const error = await this.#join(key, item, false, strict);
    return error === undefined ? this.#accepted(key, textOf(key), item, []) : { ok: false, error };
  }

  /** Brings an item to its key. Gives why it is refused, if it is. */
  async #join(key: string, item: KeyItem, front: boolean, strict = false): Promise<BatonError | undefined> {
    const store = this.#store;
    let seen = this.#remembered.get(key) ?? UNSEEN;
    for (;;) {
      if (strict && seen.state.kind !== "idle") {
        seen = await store.read(key);
        if (seen.state.kind !== "idle") return new KeyBusy(this.#queue, textOf(key));
      }
      const room = store.room - totalOf(seen.state);
      const joining = join(seen.state, item, front, store.levels, store.clock.wall(), room);
      if (joining.type === "append") {
        if ((await store.append(key, seen, item)) !== undefined) {
          this.#remembered.set(key, seen);
          if (lifts(seen.state, item)) await this.#lift(key, item);
          return undefined;
        }
      } else {
        const written = await this.#write(key, seen, joining.state);
        if (written !== undefined) {
          this.#remembered.set(key, written);
          if (written.state.items.some(({ unique }) => unique === item.unique)) return undefined;
          seen = written;
          continue;
        }
      }
      this.#remembered.delete(key);
      seen = await store.read(key);
    }
  }

  /** Whether the id of an item that has no place yet stands for another by now. */
  async #isOvertaken({ id, unique }: KeyItem): Promise<boolean> {
    if (id === undefined) return false;
    const found = await this.#store.receipts.find(id);
    return found !== undefined && found.receipt.unique !== unique;
  }

  /** The line of a key that nobody has got something more urgent: its head is chosen anew. */
  async #lift(key: string, item: KeyItem): Promise<void> {
    this.#remembered.delete(key);
    await this.#store.letGo(key, ({ state }) => (lifts(state, item) ? state : undefined));
  }

  /** A write by somebody who does not have the key. */
  async #write(key: string, seen: Seen, next: KeyState): Promise<Seen | undefined> {
    // Only the one who wrote it knows whether this was done.
    if (seen.state.todo.length > 0) await this.#store.perform(key, seen.state);
    const written = await this.#store.write(key, seen, { ...next, todo: [] });
    if (written !== undefined && (written.state.below.length > 0 || written.state.todo.length > 0))
      this.#store.background(this.#store.clear(key, written));
    return written;
  }

  /** Mode latest: the item takes the place of everything that waits. Gives the ids of what it replaced. */
  async #replace(key: string, item: KeyItem | undefined, now: number): Promise<readonly string[]> {
    const store = this.#store;
    let before: readonly KeyItem[] = [];
    let written: Seen | undefined;
    for (;;) {
      let closing = false;
      const settled = await store.readSettled(key, ({ state }) => state.items.slice(1).some((one) => !one.replaceable));
      written = await store.change(key, async ({ state, sequence }) => {
        closing = sequence !== settled.sequence;
        if (closing) return undefined;
        // Another submission of the same id may have been faster: then this one changes nothing.
        if (item !== undefined && (await this.#isOvertaken(item))) return undefined;
        const line = await this.#lineOf(key, state);
        const running = state.kind === "running" ? state.items.slice(0, 1) : [];
        before = [...state.items.slice(running.length), ...line.map(({ item: waiting }) => waiting)];
        const todo = before.flatMap((old) => ended(old, { state: "replaced", at: now, attempt: old.attempts }));
        const items = item === undefined ? running : [...running, item];
        // Out of the line by the same write that puts the new one in: whoever has the key cannot have taken them meanwhile.
        const base = { ...takeAll(state, line), items, todo: [...state.todo, ...todo] };
        if (state.lease !== undefined) return base;
        const next = free(base, items, NO_HEADS, store.levels, now);
        // Nobody may join in silence a key that is about to be idle.
        closing = next.kind === "idle" && state.more === true;
        return closing ? { ...state, announced: STAYS_ANNOUNCED, more: "closing" } : next;
      });
      if (!closing) break;
    }
    this.#remembered.delete(key);
    if (written === undefined) return [];
    const delayed: KeyItem[] = [];
    for (const one of await store.receipts.delayed(key)) {
      if (one.item.unique === item?.unique || !(await store.receipts.takeBack(one))) continue;
      delayed.push(one.item);
      const todo = ended(one.item, { state: "replaced", at: now, attempt: one.item.attempts });
      for (const entry of todo) await store.receipts.perform(entry, key);
    }
    const waiting = before.toSorted((a, b) => a.level - b.level || a.place - b.place);
    return [...waiting, ...delayed].map((old) => itemId(old, key));
  }

  async #lineOf(key: string, { taken, more, cut }: KeyState): Promise<readonly Waiting[]> {
    const line: Waiting[] = [];
    if (more === false) return line;
    for (let level = 0; level < this.#store.levels; level += 1) {
      for await (const waiting of this.#store.line(key, level, taken[level] ?? 0))
        if (!cut.includes(waiting.sequence)) line.push(waiting);
    }
    return line;
  }

  /** Why an item is not accepted, as far as limits go. */
  async #refusal(key: string, submission: Submission): Promise<BatonError | undefined> {
    const { mode, level, keyLimit, queueLimit } = submission;
    if (!this.#levels.includes(level)) return new InvalidInput("level", level, `one of ${this.#levels.join(", ")}`);
    if (mode === "strict" && (await this.#isBusy(key))) return new KeyBusy(this.#queue, textOf(key));
    if (mode === "fifo" && !(await this.#hasRoom(key, 1, submission)))
      return new KeyFull(this.#queue, textOf(key), keyLimit);
    if (mode === "latest" && (await this.#counts.behind(key)) > 0) return undefined;
    if (await this.#counts.isFull(queueLimit, EXACT_BELOW)) return new QueueFull(this.#queue, queueLimit);
    return undefined;
  }

  async #isBusy(key: string): Promise<boolean> {
    const [seen, delayed] = await Promise.all([this.#store.read(key), this.#store.receipts.hasDelayed(key)]);
    return (
      delayed ||
      (seen.state.kind !== "idle" &&
        !(seen.state.kind === "parked" && seen.state.items.length === 0 && (await this.#counts.behind(key)) === 0))
    );
  }

  /** Small limits are exact. Of large ones a part is allowed before the line is counted again. */
  async #hasRoom(key: string, count: number, submission: Submission | undefined): Promise<boolean> {
    const limit = submission?.keyLimit ?? 0;
    if (limit <= EXACT_BELOW) return (await this.#counts.behind(key)) + count <= limit;
    // A key that this process does not know as busy has no line to speak of.
    if (!this.#remembered.has(key)) return true;
    if (this.#useAllowance(key, count)) return true;
    const behind = await this.#counts.behind(key);
    if (behind + count > limit) return false;
    this.#allowance.set(key, Math.max(0, Math.floor((limit - behind - count) / 2)));
    return true;
  }

  #useAllowance(key: string, count: number): boolean {
    const allowance = this.#allowance.get(key) ?? EXACT_BELOW;
    if (allowance < count) return false;
    this.#allowance.set(key, allowance - count);
    if (this.#allowance.size > MOST_ALLOWANCES) this.#allowance.clear();
    return true;
  }

  #itemOf({ id, level, payload, headers, keepMs, mode }: Submission): KeyItem {
    return {
      unique: this.#store.nonce(),
      id,
      place: 0,
      level: this.#levels.indexOf(level),
      attempts: 0,
      submittedAt: this.#store.clock.wall(),
      payload,
      headers,
      keepMs,
      replaceable: mode === "latest",
      dueAt: undefined,
    };
  }

  #accepted(key: string, name: string, item: KeyItem, replaced: readonly string[]): SubmitResult {
    const accepted: Accepted = {
      id: itemId(item, key),
      key: name,
      level: this.#levels[item.level] ?? "",
      at: item.submittedAt,
      duplicate: false,
      replaced,
    };
    return { ok: true, accepted };
  }
}

function alone(result: SubmitResult): readonly SubmitResult[] {
  return [result];
}

function duplicate(id: string, { key, level, at }: Receipt): SubmitResult {
  return { ok: true, accepted: { id, key, level, at, duplicate: true, replaced: [] } };
}
