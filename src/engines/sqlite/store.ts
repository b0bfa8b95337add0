import type { Instant } from "../../domain/clock.ts";
import { QueueMissing } from "../../domain/errors.ts";
import { Claims, hold, isWorthHolding, want, wantNoMore } from "./claim.ts";
import { beginWrite, commit, emptyLog, openDatabase, type Synchronous } from "./database.ts";
import { DueDates } from "./due.ts";
import { describeStoreFailure, isOfTheStore, SQLITE_FULL, sqliteCode } from "./failure.ts";
import { QueueDeletion } from "./delete-queue.ts";
import { Inspection } from "./inspect.ts";
import type { Call, Granted, Kind, News, PlainFailure, Replies, Reply, Requests } from "./messages.ts";
import { newsOf } from "./news.ts";
import { Operations } from "./operate.ts";
import { makeParts, type Parts } from "./parts.ts";
import { lapsed, renew, settleAll } from "./settle.ts";
import { SameFile } from "./same-file.ts";
import { submitGroup } from "./submit.ts";
import { Waiting, type WaitingCall } from "./waiting.ts";

/** Receipts, and cells, forgotten in one transaction, at most. */
const FORGET_AT_A_TIME = 200;
const FORGET_EVERY_MS = 1_000;
/** After another process has written, those who wait for outcomes and cells are looked at together, not at each of its writes. */
const FOREIGN_LOOK_MS = 5;
/** How long a question waits for the write lock to let happen what is due: others hold it for a moment. Then it shows what is there. */
const QUESTION_LOCK_WAIT_MS = 1_000;

const READ_ONLY: ReadonlySet<Kind> = new Set<Kind>([
  "find",
  "outcome",
  "queues",
  "keys",
  "dead",
  "check",
  "lapsed",
  "looks",
  "readCell",
  "listCells",
  "watchCell",
  "abandon",
]);

/** Of those, the ones that show what time has done. Not the check: it warns of leases that nobody took over. */
const SHOWS_TIME: ReadonlySet<Kind> = new Set<Kind>(["find", "queues", "keys"]);

/** What a batch led to. */
export interface BatchResult {
  readonly replies: readonly Reply[];
  /** What whoever waits, in this process or another, should hear of. */
  readonly news: readonly News[];
  /** Cells that somebody in another process may wait for. */
  readonly cells: readonly string[];
}

/**
 * The whole store, in one thread and with plain calls. Everything that is asked of it at a time is done in one
 * transaction, so that all of it shares one write to the disk.
 */
export class Store {
  readonly #file: string;
  readonly #sameFile: SameFile;
  readonly #parts: Parts;
  readonly #claims: Claims;
  readonly #dueDates: DueDates;
  readonly #operations: Operations;
  readonly #inspection: Inspection;
  readonly #deletion: QueueDeletion;
  readonly #waiting = new Waiting();
  /** Holds that were waited for no longer, whose marks are still in the store. */
  readonly #givenUp: Requests["hold"][] = [];
  readonly #now: () => Instant;
  readonly #isAlive: () => boolean;
  /** Those who wait were not served, because the application showed no life. */
  #putOff = false;
  /** How often ready keys were looked for. */
  #looks = 0;
  #step = 0;
  #lookedIn = 0;
  #forgetAt = 0;

  /** @param isAlive whether the application can begin what is taken for it; if not, the store is to be told to look when it can */
  constructor(file: string, synchronous: Synchronous, now: () => Instant, isAlive: () => boolean = () => true) {
    const db = openDatabase(file, synchronous);
    this.#file = file;
    this.#sameFile = new SameFile(file);
    this.#now = now;
    this.#isAlive = isAlive;
    this.#parts = makeParts(db);
    const { sql } = this.#parts;
    this.#claims = new Claims(sql);
    this.#dueDates = new DueDates(sql);
    this.#operations = new Operations(sql);
    this.#deletion = new QueueDeletion(sql);
    this.#inspection = new Inspection(this.#parts, this.#operations);
    this.#write(() => {
      this.#dueDates.endLeasesOfAnotherBoot(now().monotonic);
      this.#parts.cells.countAnewAfterBoot(now());
    });
  }

  get hasWaiting(): boolean {
    return !this.#waiting.empty;
  }

  watchedCells(): readonly string[] {
    return this.#waiting.cells().map(({ request }) => request.name);
  }

  run(asked: readonly Call[]): BatchResult {
    this.#step += 1;
    const calls = asked.filter(({ kind }) => kind !== "abandon");
    // Whoever gave up is let go first, without a transaction, so that nothing can get in the way of that; and once more
    // afterwards, if the call that was given up came along with these.
    const before = this.#dismiss(asked);
    const { replies, ...news } = together([this.#settledFor(calls), this.#runTogether(calls)]);
    const after = [...this.#dismiss(asked), ...this.#clearMarks()];
    const told = asked.flatMap(({ call, kind }) => (kind === "abandon" ? [{ call, value: undefined }] : []));
    return { replies: [...before, ...replies, ...after, ...told], ...news };
  }

  /**
   * Nobody may have asked for long, and what came due since then has not happened yet: it comes before what is shown. As
   * much of it as fits into one transaction; and if none can be had, a store that cannot be written can still be looked at.
   */
  #settledFor(calls: readonly Call[]): BatchResult {
    if (!calls.some(({ kind }) => SHOWS_TIME.has(kind))) return NOTHING;
    try {
      const isDue = this.#dueDates.waitMs(this.#parts, this.#now()) === 0;
      return isDue ? this.#written([], QUESTION_LOCK_WAIT_MS) : NOTHING;
    } catch {
      return NOTHING;
    }
  }

  #runTogether(calls: readonly Call[]): BatchResult {
    try {
      this.#sameFile.check(this.#now().monotonic);
      if (this.#givenUp.length > 0 || !calls.every((call) => this.#isRead(call))) return this.#written(calls);
      this.#begin();
      return { replies: this.#runAll(calls), ...NO_NEWS };
    } catch (error) {
      // A call that the store cannot digest must not take the others with it.
      if (calls.length > 1 && !isOfTheStore(error)) return together(calls.map((call) => this.#runTogether([call])));
      return { replies: this.#failed(error, calls), ...NO_NEWS };
    }
  }

  #dismiss(asked: readonly Call[]): readonly Reply[] {
    return asked.flatMap(({ kind, request }) => (kind === "abandon" ? this.#letGo(request.call) : []));
  }

  #letGo(call: number): readonly Reply[] {
    const waiting = this.#waiting.take(call);
    if (waiting === undefined) return [];
    if (waiting.kind === "hold") this.#givenUp.push(waiting.request);
    return [{ call, value: waiting.kind === "claim" ? NOTHING_GRANTED : undefined }];
  }

  /** A mark that cannot be removed now costs its key a moment, once. */
  #clearMarks(): readonly Reply[] {
    return this.#givenUp.length === 0 ? [] : this.#runTogether([]).replies;
  }

  /** Something may have changed: another process rang, or time has passed. Serves whoever waits. */
  look(): BatchResult {
    this.#step += 1;
    const told: Reply[] = [];
    try {
      this.#sameFile.check(this.#now().monotonic);
      const { tx } = this.#parts;
      tx.begin(this.#now());
      // Outcomes of this process's own making were told when they happened.
      const { foreign } = tx;
      if (foreign) {
        told.push(...this.#told(this.#strangers()), ...this.#outcomesKnown(), ...this.#cellsChanged());
      }
      tx.foreign = false;
      if (this.#waiting.onlyForCells) return { replies: told, ...NO_NEWS };
      const due = this.#dueDates.waitMs(this.#parts, this.#now()) === 0;
      // What this process did, it has served in the same transaction.
      const forUs = this.#anyHold() || ((foreign || this.#putOff) && this.#anyReady());
      if (!due && !(forUs && this.#mayTake())) return { replies: told, ...NO_NEWS };
      const { replies, ...news } = this.#written([]);
      return { replies: [...told, ...replies], ...news };
    } catch (error) {
      // Whoever waits should know why nothing comes; they ask again.
      return { replies: [...told, ...this.#failed(error, this.#waiting.all())], ...NO_NEWS };
    }
  }

  /** Counted once in a step, however many claims it serves. */
  #noteLook(): void {
    if (this.#lookedIn !== this.#step) this.#looks += 1;
    this.#lookedIn = this.#step;
  }

  #anyReady(): boolean {
    const queues = new Set(this.#waiting.claims().map(({ request }) => request.queue));
    if (queues.size > 0) this.#noteLook();
    return [...queues].some((queue) => this.#claims.anyReady(queue));
  }

  #anyHold(): boolean {
    const { monotonic } = this.#now();
    return this.#waiting.holds().some(({ request }) => isWorthHolding(this.#parts, request, monotonic));
  }

  /** How long a look can be put off; Infinity if nobody waits or nothing is due. */
  waitMs(): number {
    if (this.#waiting.empty) return Infinity;
    const dueMs = this.#waiting.onlyForCells ? Infinity : this.#dueDates.waitMs(this.#parts, this.#now());
    return this.#parts.tx.foreign && !this.#waiting.onlyForWork ? Math.min(dueMs, FOREIGN_LOOK_MS) : dueMs;
  }

  close(): readonly Reply[] {
    const replies = this.#waiting.all().flatMap(({ call }) => this.#letGo(call));
    this.#clearMarks();
    this.#parts.db.close();
    return replies;
  }

  /** A claim that finds nothing, and a declaration that is already there, need no write lock. */
  #isRead({ kind, request }: Call): boolean {
    if (READ_ONLY.has(kind)) return true;
    if (kind === "declare") return this.#operations.declaration(request.queue) !== undefined;
    if (kind !== "claim") return false;
    this.#noteLook();
    return !this.#claims.anyReady(request.queue) && this.#dueDates.waitMs(this.#parts, this.#now()) > 0;
  }

  #runAll(calls: readonly Call[]): Reply[] {
    const replies: Reply[] = [];
    // What came due before comes before what is asked for now.
    if (this.#writing) {
      this.#dueDates.settle(this.#parts);
      for (const request of this.#givenUp.splice(0))
        if (this.#parts.tx.queues.has(request.queue)) wantNoMore(this.#parts, request);
    }
    for (const one of calls) {
      const stranger = this.#undeclared(one);
      if (stranger !== undefined) replies.push({ call: one.call, failure: stranger });
      else {
        const value = this.#runOne(one);
        if (value !== WAITS) replies.push({ call: one.call, value });
      }
    }
    if (this.#writing) {
      replies.push(...this.#strangers());
      this.#serve(replies);
    }
    return replies;
  }

  /** A queue that nobody declared on this handle, or that was deleted: the caller's mistake, and nobody else's call should fail for it. */
  #undeclared({ kind, request }: Call): PlainFailure | undefined {
    if (kind === "declare" || kind === "queues" || kind === "deleteQueue") return undefined;
    if (request === null || !("queue" in request) || this.#parts.tx.queues.has(request.queue)) return undefined;
    const { code, message } = new QueueMissing(request.queue);
    return { code, message };
  }

  /** Those who wait for something in a queue that was deleted. */
  #strangers(): readonly Reply[] {
    return this.#waiting.all().flatMap((waiting) => {
      const failure = this.#undeclared(waiting);
      return failure === undefined ? [] : [{ call: waiting.call, failure }];
    });
  }

  #runOne<K extends Kind>({ call, kind, request }: Call<K>): Replies[K] | typeof WAITS {
    return this.#handlers[kind](request, call);
  }

  readonly #handlers: Handlers = {
    declare: (request) => this.#operations.declaration(request.queue) ?? this.#operations.declare(request),
    submit: (groups) => ({
      at: this.#parts.tx.wall,
      answers: groups.flatMap((group) => submitGroup(this.#parts, group)),
    }),
    claim: (request, call) => this.#wait({ call, kind: "claim", request }),
    hold: (request, call) => {
      const held = hold(this.#parts, request);
      if (held !== undefined) return { since: this.#began, ...held };
      return request.waits ? this.#wait({ call, kind: "hold", request }) : undefined;
    },
    renew: (renewals) => ({ since: this.#began, results: renewals.map((renewal) => renew(this.#parts, renewal)) }),
    settle: (settlements) => settleAll(this.#parts, settlements),
    cancel: (request) => this.#operations.cancel(this.#parts, request),
    pause: (request) => this.#operations.pause(this.#parts, request),
    deleteQueue: (request) => this.#deletion.run(this.#parts, request),
    revive: (request) => this.#operations.revive(this.#parts, request),
    find: (request) => this.#inspection.find(request, this.#now()),
    queues: (request) => this.#inspection.queues(request),
    keys: (request) => {
      this.#parts.tx.keys.flush();
      return this.#inspection.keys(request, this.#now());
    },
    dead: (request) => this.#inspection.dead(request),
    lapsed: (leases) => lapsed(this.#parts, leases),
    looks: () => this.#looks,
    check: () => this.#inspection.check(this.#now()),
    readCell: ({ name }) => this.#parts.cells.read(name, this.#now().monotonic),
    writeCell: (request) => this.#parts.cells.write(this.#parts.tx, request),
    listCells: ({ prefix }) => this.#parts.cells.list(prefix, this.#now().monotonic),
    watchCell: ({ name, version: known }, call) => {
      const version = this.#parts.cells.version(name, this.#now().monotonic);
      if (known !== undefined && version !== known) return version;
      return this.#wait({ call, kind: "watchCell", request: { name, version } });
    },
    outcome: (request, call) => {
      const outcome = this.#inspection.outcome(request, this.#now());
      if (outcome !== "pending") return outcome;
      return this.#wait({ call, kind: "outcome", request, queue: this.#parts.tx.queues.find(request.queue).id });
    },
    abandon: () => {
      throw new Error("Whoever gives up is let go before.");
    },
  };

  #wait(waiting: WaitingCall): typeof WAITS {
    this.#waiting.add(waiting);
    return WAITS;
  }

  #failed(error: unknown, calls: readonly Pick<Call, "call">[]): readonly Reply[] {
    const { code, message } = describeStoreFailure(error, this.#file);
    for (const { call } of calls) this.#waiting.forget(call);
    return calls.map(({ call }) => ({ call, failure: { code, message } }));
  }

  /** What an application takes that cannot begin it, nobody works on until its lease has run out. */
  #mayTake(): boolean {
    this.#putOff = !this.#isAlive();
    return !this.#putOff;
  }

  /** Holds go first, because a busy key has a next item again and again. Then those who wait for work, first come first served. */
  #serve(replies: Reply[]): void {
    const { queues } = this.#parts.tx;
    const claims = this.#waiting.claims().filter(({ request }) => queues.has(request.queue));
    const holds = this.#waiting.holds().filter(({ request }) => queues.has(request.queue));
    if ((claims.length === 0 && holds.length === 0) || !this.#mayTake()) return;
    for (const { call, request } of holds) {
      const held = hold(this.#parts, request);
      if (held === undefined) want(this.#parts, request);
      else replies.push({ call, value: { since: this.#began, ...held } });
    }
    const empty = new Set<string>();
    if (claims.length > 0) this.#noteLook();
    for (const { call, request } of claims) {
      if (empty.has(request.queue)) continue;
      const grants = this.#claims.claim(this.#parts, request);
      if (grants.length === 0) empty.add(request.queue);
      else {
        const { levels } = this.#parts.tx.queues.find(request.queue);
        const granted: Granted = { since: this.#began, levels, grants };
        replies.push({ call, value: granted });
      }
    }
  }

  /** In one transaction. Only what is committed is told, and only then are those who waited let go. */
  #written(calls: readonly Call[], lockWaitMs?: number): BatchResult {
    const replies = this.#told(this.#write(() => this.#runAll(calls), lockWaitMs));
    const { tx } = this.#parts;
    const news = { cells: [...tx.cellNews], news: newsOf(tx) };
    if ((tx.ended.length === 0 && tx.cells.size === 0) || this.#waiting.onlyForWork) return { replies, ...news };
    try {
      const known = [...this.#outcomesKnown([...tx.ended]), ...this.#cellsChanged(tx.cells)];
      return { replies: [...replies, ...known], ...news };
    } catch {
      // What is committed is told in any case; those who wait for it are looked at again.
      tx.foreign = true;
      return { replies, ...news };
    }
  }

  #outcomesKnown(of?: readonly { readonly queue: number; readonly id: string }[]): readonly Reply[] {
    const known = this.#waiting.outcomes(of).flatMap(({ call, request }) => {
      const outcome = this.#inspection.outcome(request, this.#now());
      return outcome === "pending" ? [] : [{ call, value: outcome }];
    });
    return this.#told(known);
  }

  #cellsChanged(of?: ReadonlySet<string>): readonly Reply[] {
    const changed = this.#waiting.cells(of).flatMap(({ call, request }) => {
      const value = this.#parts.cells.version(request.name, this.#now().monotonic);
      return value === request.version ? [] : [{ call, value }];
    });
    return this.#told(changed);
  }

  #told(replies: readonly Reply[]): readonly Reply[] {
    for (const { call } of replies) this.#waiting.forget(call);
    return replies;
  }

  #began: Instant = { wall: 0, monotonic: 0 };
  #writing = false;
  /** The disk was full. The log, which grows for a long time before it is used again, must now make do with its size. */
  #wasFull = false;

  #write<T>(work: () => T, lockWaitMs?: number): T {
    const { db, tx, items, receipts, cells } = this.#parts;
    if (this.#wasFull) this.#wasFull = !emptyLog(db);
    beginWrite(db, lockWaitMs);
    try {
      this.#writing = true;
      this.#begin();
      const result = work();
      if (tx.wall >= this.#forgetAt) {
        // At least as fast as new ones end.
        const most = Math.max(FORGET_AT_A_TIME, 2 * tx.ended.length);
        const forgotten = Math.max(receipts.forgetExpired(tx.wall, most), cells.forgetExpired(tx.monotonic, most));
        this.#forgetAt = forgotten === most ? tx.wall : tx.wall + FORGET_EVERY_MS;
      }
      items.flush();
      tx.finish();
      commit(db);
      return result;
    } catch (error) {
      tx.forget();
      items.forget();
      this.#wasFull ||= sqliteCode(error) === SQLITE_FULL;
      if (db.isTransaction) db.exec("ROLLBACK");
      throw error;
    } finally {
      this.#writing = false;
    }
  }

  #begin(): void {
    this.#began = this.#now();
    this.#parts.tx.begin(this.#began);
  }
}

function together(results: readonly BatchResult[]): BatchResult {
  return {
    replies: results.flatMap(({ replies }) => replies),
    news: results.flatMap(({ news }) => news),
    cells: results.flatMap(({ cells }) => cells),
  };
}

const NO_NEWS = { cells: [], news: [] } as const;
const NOTHING: BatchResult = { replies: [], ...NO_NEWS };

const NOTHING_GRANTED: Granted = { since: { wall: 0, monotonic: 0 }, levels: [], grants: [] };

const WAITS = Symbol("waits");

type Handlers = { readonly [K in Kind]: (request: Requests[K], call: number) => Replies[K] | typeof WAITS };
