import { type Duration, parseDuration } from "../domain/duration.ts";
import { BatonError, Closed, InvalidInput, QueueMissing } from "../domain/errors.ts";
import { defaultLevel } from "../domain/level.ts";
import { checkId, checkKey, checkReference } from "../domain/names.ts";
import { checkFlag, checkList, checkOptions, checkSignal, type OptionNames } from "../domain/options.ts";
import { bodySize, encodePayload } from "../domain/payload.ts";
import { checkCount, checkMode, type Mode, parseLease, type QueueSettings } from "../domain/settings.ts";
import type {
  CancelResult,
  DeadReport,
  ItemReport,
  KeyReport,
  PageRequest,
  QueueDeclaration,
  QueueReport,
  Submission,
  SubmitResult,
  Transaction,
} from "../engine/port.ts";
import type { Handler } from "../worker/handler.ts";
import type { HeldLock } from "./locks/hold.ts";
import { HOLD_OPTIONS, holdKey, type HoldOptions } from "./locks/key-hold.ts";
import { checkOwner, parseWait } from "./locks/options.ts";
import type { Shared } from "./shared.ts";
import { PartlyRefused } from "./partly-refused.ts";
import { Receipt } from "./receipt.ts";
import { TAKE_OPTIONS, type TakenItem, type TakeOptions, Taker } from "./take.ts";
import { checkHandler, Worker, type WorkOptions, workerSettings } from "./worker.ts";

export interface SubmitOptions {
  /** Default: the middle one, `normal`. */
  readonly level?: string | undefined;
  /** Makes the submission idempotent, and its outcome known. */
  readonly id?: string | undefined;
  /** The item arrives when this has passed. */
  readonly delay?: Duration | undefined;
  /** Instead of the queue's. */
  readonly mode?: Mode | undefined;
  /** The payload's content type. Default: JSON; bytes are `application/octet-stream`. */
  readonly type?: string | undefined;
  /** Opaque text that travels with the item, such as trace context. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Instead of the queue's: how long to keep how this item ended. */
  readonly history?: Duration | undefined;
  /**
   * Your own transaction in the same database, such as a client of node-postgres after `BEGIN`: the item is accepted if it commits, and was
   * never there if it does not. PostgreSQL only.
   */
  readonly transaction?: Transaction | undefined;
}

export interface Submit<T> extends SubmitOptions {
  readonly key: string;
  readonly payload: T;
}

export interface PageOptions {
  readonly after?: string | undefined;
  /** Default 100. */
  readonly limit?: number | undefined;
}

export interface DeleteQueueOptions {
  /** Also when it is not empty: its items, dead letters and leases are lost. */
  readonly force?: boolean | undefined;
}

export interface KeyPageOptions extends PageOptions {
  readonly leased?: boolean | undefined;
}

const SUBMIT_OPTIONS: OptionNames<SubmitOptions> = {
  level: true,
  id: true,
  delay: true,
  mode: true,
  type: true,
  headers: true,
  history: true,
  transaction: true,
};
const SUBMIT: OptionNames<Submit<unknown>> = { ...SUBMIT_OPTIONS, key: true, payload: true };
const DELETE_QUEUE_OPTIONS: OptionNames<DeleteQueueOptions> = { force: true };
const PAGE_OPTIONS: OptionNames<PageOptions> = { after: true, limit: true };
const KEY_PAGE_OPTIONS: OptionNames<KeyPageOptions> = { ...PAGE_OPTIONS, leased: true };

/** Headers are small: they travel with every look at the item. */
const LONGEST_HEADERS_BYTES = 8 * 1024;

/** A named exclusivity domain: at most one worker at a time on each of its keys. */
export class Queue<T> {
  readonly name: string;
  readonly #shared: Shared;
  readonly #settings: QueueSettings;
  /** By the length of their lease. */
  readonly #takers = new Map<number, Taker>();
  #declared: Promise<QueueDeclaration> | undefined;
  /** As the store has them, once that is known: whoever submits then need not wait for it. */
  #levels: readonly string[] | undefined;

  constructor(shared: Shared, name: string, settings: QueueSettings) {
    this.name = name;
    this.#shared = shared;
    this.#settings = settings;
  }

  /** Accepts an item for a key. When this resolves, the item survives the crash of every client and of the store. */
  async submit(key: string, payload: T, options: SubmitOptions = {}): Promise<Receipt> {
    checkOptions(options, SUBMIT_OPTIONS);
    const levels = this.#levels ?? (await this.levels());
    const submission = this.#submission(levels, key, payload, options);
    const [result] = await this.#submitted([submission]);
    if (result === undefined) throw new Error("The engine answered nothing to a submission.");
    if (!result.ok) throw result.error;
    return new Receipt(this.#shared, this.name, result.accepted, submission.keepMs);
  }

  /** Many at once, in order. If some are refused it rejects with `PartlyRefused`, which says which; the others are accepted. */
  async submitMany(submits: readonly Submit<T>[], ...others: readonly never[]): Promise<readonly Receipt[]> {
    // JavaScript would let a transaction here go unnoticed.
    const [options] = others;
    if (options !== undefined)
      throw new InvalidInput(
        "options",
        options,
        "none: level, transaction and so on stand beside the key of each item",
      );
    checkList(submits, "submits", "items, each with key and payload");
    const levels = this.#levels ?? (await this.levels());
    const submissions = submits.map((one, index) => {
      try {
        checkOptions(one, SUBMIT);
        return this.#submission(levels, one.key, one.payload, one);
      } catch (error) {
        if (error instanceof InvalidInput) throw error.at(`[${index}]`);
        throw error;
      }
    });
    const results = await this.#submitted(submissions);
    const answers = results.map((result, index) =>
      result.ok ? new Receipt(this.#shared, this.name, result.accepted, submissions[index]?.keepMs ?? 0) : result.error,
    );
    const receipts = answers.filter((answer) => answer instanceof Receipt);
    if (receipts.length === answers.length) return receipts;
    throw new PartlyRefused(this.name, answers);
  }

  /** Starts a worker. It runs until it is stopped. `worker.ready` tells when it is at work, and why it cannot be. */
  work(handler: Handler<T>, options: WorkOptions = {}): Worker {
    if (this.#shared.closed) throw new Closed();
    checkHandler(handler);
    const settings = workerSettings(this.name, this.#settings, options);
    return new Worker(this.#shared, settings, handler, () => this.#declareAnew(), options.untilEmpty ?? false);
  }

  /**
   * Takes items by hand, for those who cannot give a handler: up to `max`, as soon as there is one. You settle each of them; until
   * then its lease is renewed.
   */
  async take(options: TakeOptions = {}): Promise<readonly TakenItem<T>[]> {
    checkOptions(options, TAKE_OPTIONS);
    const { patienceMs, retry, payloadLimit: resultLimit } = this.#settings;
    const leaseMs = options.lease === undefined ? this.#settings.leaseMs : parseLease(options.lease);
    const worker = checkOwner(options.name, "name");
    const signal = checkSignal(options.signal);
    const request = { queue: this.name, worker, leaseMs, patienceMs, retry, resultLimit, signal };
    const max = checkCount(options.max ?? 1, "max");
    const waitMs = parseWait(options.wait);
    let taker = this.#takers.get(leaseMs);
    if (taker === undefined) {
      taker = new Taker(this.#shared, leaseMs);
      this.#takers.set(leaseMs, taker);
    }
    const own = taker;
    return await this.#inStore(() => own.take<T>({ ...request, max, waitMs }));
  }

  /**
   * Holds a key as a lock: while it is held no worker gets it, and whoever works on it now is waited for. Throws `LockBusy`
   * when it is not to be had in the time given.
   */
  async hold(key: string, options: HoldOptions = {}): Promise<HeldLock> {
    const { lease, wait, signal } = checkOptions(options, HOLD_OPTIONS);
    checkSignal(signal);
    const leaseMs = lease === undefined ? this.#settings.leaseMs : parseLease(lease);
    const waitMs = parseWait(wait);
    const request = { queue: this.name, key: checkKey(key), worker: checkOwner(), leaseMs };
    return await this.#inStore(() => holdKey(this.#shared, request, waitMs, signal));
  }

  /** The levels, most urgent first, as the store has them. */
  async levels(): Promise<readonly string[]> {
    this.#levels = (await this.#declare()).levels;
    return this.#levels;
  }

  async status(): Promise<QueueReport> {
    return await this.#inStore(async () => {
      const [report] = await this.#shared.engine.queues({ queue: this.name });
      if (report === undefined) throw new QueueMissing(this.name);
      return report;
    });
  }

  /** The keys that have an item, a lease or a pause; with `leased`, only those in work or held. */
  async keys(page: KeyPageOptions = {}): Promise<readonly KeyReport[]> {
    checkOptions(page, KEY_PAGE_OPTIONS);
    const request = { ...this.#page(page), leased: checkFlag(page.leased, "leased") };
    return await this.#inStore(() => this.#shared.engine.keys(request));
  }

  /** Where an item is, or how it ended. Undefined: never seen, or ended and not remembered. */
  async item(id: string): Promise<ItemReport | undefined> {
    const request = { queue: this.name, id: checkReference(id, "id") };
    return await this.#inStore(() => this.#shared.engine.find(request));
  }

  async cancel(id: string): Promise<CancelResult> {
    const request = { queue: this.name, id: checkReference(id, "id") };
    return await this.#inStore(() => this.#shared.engine.cancel(request));
  }

  /** Stops handing out the queue, or one key of it. What runs is left alone; items are still accepted. */
  pause(key?: string): Promise<void> {
    return this.#pause(true, key);
  }

  resume(key?: string): Promise<void> {
    return this.#pause(false, key);
  }

  /**
   * Deletes the queue from the store, with its settings there, its pauses, and what is remembered of ended items. False: there was none. Throws
   * `QueueNotEmpty` while it has items, dead letters or leases; with `force` these are lost too. Whoever uses the queue later makes it anew.
   */
  async delete(options: DeleteQueueOptions = {}): Promise<boolean> {
    const force = checkFlag(checkOptions(options, DELETE_QUEUE_OPTIONS).force, "force");
    const deleted = await this.#shared.engine.deleteQueue({ queue: this.name, force: force ?? false });
    this.#forget();
    return deleted;
  }

  async dead(page: PageOptions = {}): Promise<readonly DeadReport[]> {
    const request = this.#page(checkOptions(page, PAGE_OPTIONS));
    return await this.#inStore(() => this.#shared.engine.dead(request));
  }

  /** Submits dead letters anew: those named, or all. Returns how many. */
  retryDead(ids?: readonly string[]): Promise<number> {
    return this.#revive("retry", ids);
  }

  /** Forgets dead letters: those named, or all. Returns how many. */
  dropDead(ids?: readonly string[]): Promise<number> {
    return this.#revive("drop", ids);
  }

  async #revive(action: "retry" | "drop", ids: readonly string[] | undefined): Promise<number> {
    if (ids !== undefined) checkList(ids, "ids", "ids");
    for (const id of ids ?? []) checkReference(id, "ids");
    const request = { queue: this.name, action, ...(ids === undefined ? {} : { ids }) };
    return await this.#inStore(() => this.#shared.engine.revive(request));
  }

  async #pause(paused: boolean, key: string | undefined): Promise<void> {
    const request = { queue: this.name, paused, ...(key === undefined ? {} : { key: checkKey(key) }) };
    await this.#inStore(() => this.#shared.engine.pause(request));
  }

  #page({ after, limit = 100 }: PageOptions): PageRequest {
    checkCount(limit, "limit");
    if (after !== undefined) checkReference(after, "after");
    return after === undefined ? { queue: this.name, limit } : { queue: this.name, limit, after };
  }

  async #submitted(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    const { engine } = this.#shared;
    let results: readonly SubmitResult[];
    try {
      results = await engine.submit(submissions);
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.#forget();
      // What failed within a transaction of the application has ended that transaction: it is the application that begins again.
      if (submissions.some(({ transaction }) => transaction !== undefined)) throw error;
      await this.#declare();
      return await engine.submit(submissions);
    }
    return results.some(isRefusedAsMissing) ? await this.#submittedAgain(submissions, results) : results;
  }

  /** The queue was deleted since it was declared here: what was refused for that is submitted again. */
  async #submittedAgain(
    submissions: readonly Submission[],
    results: readonly SubmitResult[],
  ): Promise<readonly SubmitResult[]> {
    this.#forget();
    await this.#declare();
    const refused = submissions.filter((_, index) => {
      const result = results[index];
      return result !== undefined && isRefusedAsMissing(result);
    });
    const again = [...(await this.#shared.engine.submit(refused))];
    return results.map((result) => (isRefusedAsMissing(result) ? (again.shift() ?? result) : result));
  }

  /** A call that needs the queue to be in the store: somebody may have deleted it since it was declared here, and it is made anew then. */
  async #inStore<R>(call: () => Promise<R>): Promise<R> {
    await this.#declare();
    try {
      return await call();
    } catch (error) {
      if (!isMissing(error)) throw error;
      this.#forget();
      await this.#declare();
      return await call();
    }
  }

  /** For a worker, which asks when it begins, and when the queue was deleted under it. */
  #declareAnew(): Promise<QueueDeclaration> {
    this.#forget();
    return this.#declare();
  }

  #forget(): void {
    this.#declared = undefined;
    this.#levels = undefined;
  }

  /** Once per queue object; a store that could not be reached is asked again by the next call. */
  #declare(): Promise<QueueDeclaration> {
    if (this.#declared !== undefined) return this.#declared;
    const { levels } = this.#settings;
    const declared = this.#shared.engine.declare(
      levels === undefined ? { queue: this.name } : { queue: this.name, levels },
    );
    this.#declared = declared;
    declared.catch(() => {
      if (this.#declared === declared) this.#declared = undefined;
    });
    return declared;
  }

  #submission(levels: readonly string[], key: string, value: T, options: SubmitOptions): Submission {
    const { id, level, delay, mode, type, headers, history, transaction } = options;
    if (transaction !== undefined) this.#checkTransaction(transaction);
    if (level !== undefined && !levels.includes(level)) throw new InvalidInput("level", level, levels.join(", "));
    if (type !== undefined && typeof type !== "string")
      throw new InvalidInput("type", type, "a content type such as text/plain");
    const payload = encodePayload(value, type);
    const size = bodySize(payload.body);
    if (size > this.#settings.payloadLimit) {
      throw new InvalidInput(
        "payload",
        `${size} bytes`,
        `at most ${this.#settings.payloadLimit} bytes (limits.payload)`,
      );
    }
    const historyMs = history === undefined ? this.#settings.historyMs : parseDuration(history, "history");
    const submission: Submission = {
      queue: this.name,
      key: checkKey(key),
      level: level ?? defaultLevel(levels),
      payload,
      delayMs: delay === undefined ? 0 : parseDuration(delay, "delay"),
      mode: mode === undefined ? this.#settings.mode : checkMode(mode),
      keyLimit: this.#settings.keyLimit,
      queueLimit: this.#settings.queueLimit,
      keepMs: id === undefined ? historyMs : Math.max(historyMs, this.#settings.rememberMs),
    };
    // Most have none of these, and should not pay for a second object.
    if (id === undefined && headers === undefined && transaction === undefined) return submission;
    return {
      ...submission,
      ...(id === undefined ? {} : { id: checkId(id) }),
      ...(headers === undefined ? {} : { headers: checkHeaders(headers) }),
      ...(transaction === undefined ? {} : { transaction }),
    };
  }

  #checkTransaction(transaction: Transaction | null): void {
    const { name, transactions } = this.#shared.engine;
    if (transactions !== true)
      throw new InvalidInput("transaction", name, "a store that shares its transactions with you, which is PostgreSQL");
    // Null, as of a variable that was never set, must not make it a submission on its own.
    if (typeof transaction !== "object" || transaction === null || typeof transaction.query !== "function")
      throw new InvalidInput("transaction", transaction, "a client with query(text, values)");
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof BatonError && error.code === "QUEUE_MISSING";
}

function isRefusedAsMissing(result: SubmitResult): boolean {
  return !result.ok && isMissing(result.error);
}

function checkHeaders(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (typeof headers !== "object" || headers === null || Array.isArray(headers))
    throw new InvalidInput("headers", headers, "an object whose values are texts");
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== "string") throw new InvalidInput(`headers.${name}`, value, "a text");
  }
  const size = Buffer.byteLength(JSON.stringify(headers));
  if (size > LONGEST_HEADERS_BYTES)
    throw new InvalidInput("headers", `${size} bytes`, `at most ${LONGEST_HEADERS_BYTES} bytes as JSON`);
  return headers;
}
