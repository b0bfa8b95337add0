import type { Instant } from "../../domain/clock.ts";
import { Claims, hold } from "./claim.ts";
import { beginWrite, openDatabase, type Synchronous } from "./database.ts";
import { DueDates } from "./due.ts";
import { describeStoreFailure } from "./failure.ts";
import { Inspection } from "./inspect.ts";
import type { Call, Granted, Kind, Replies, Reply, Requests } from "./messages.ts";
import { Operations } from "./operate.ts";
import { makeParts, type Parts } from "./parts.ts";
import { renew, settle } from "./settle.ts";
import { submitGroup } from "./submit.ts";
import { Waiting } from "./waiting.ts";

/** Receipts forgotten in one transaction, at most. */
const FORGET_AT_A_TIME = 200;
const FORGET_EVERY_MS = 1_000;

const READ_ONLY: ReadonlySet<Kind> = new Set<Kind>(["find", "outcome", "queues", "keys", "dead", "check", "abandon"]);

/** What a batch led to. */
export interface BatchResult {
  readonly replies: readonly Reply[];
  /** Another process may have somebody asleep who should look. */
  readonly ring: boolean;
}

/**
 * The whole store, in one thread and with plain calls. Everything that is asked of it at a time is done in one
 * transaction, so that all of it shares one write to the disk.
 */
export class Store {
  readonly #file: string;
  readonly #parts: Parts;
  readonly #claims: Claims;
  readonly #dueDates: DueDates;
  readonly #operations: Operations;
  readonly #inspection: Inspection;
  readonly #waiting = new Waiting();
  readonly #now: () => Instant;
  #forgetAt = 0;

  constructor(file: string, synchronous: Synchronous, now: () => Instant) {
    const db = openDatabase(file, synchronous);
    this.#file = file;
    this.#now = now;
    this.#parts = makeParts(db);
    this.#claims = new Claims(db);
    this.#dueDates = new DueDates(db);
    this.#operations = new Operations(db);
    this.#inspection = new Inspection(this.#parts, this.#operations);
    this.#write(() => this.#dueDates.endLeasesOfAnotherBoot(now().monotonic));
  }

  get hasWaiting(): boolean {
    return !this.#waiting.empty;
  }

  run(calls: readonly Call[]): BatchResult {
    const replies: Reply[] = [];
    try {
      // Only what is committed is told, and only then are those who waited let go.
      const writes = calls.filter((call) => !this.#isRead(call));
      if (writes.length > 0) return this.#written(() => this.#runAll(calls, replies), replies);
      this.#read(() => this.#runAll(calls, replies));
      return { replies: [...replies, ...this.#waiting.takeDismissed()], ring: false };
    } catch (error) {
      const failure = describeStoreFailure(error, this.#file);
      for (const { call } of calls) this.#waiting.forget(call);
      const told = calls.map(({ call }): Reply => ({
        call,
        failure: { code: failure.code, message: failure.message },
      }));
      return { replies: [...told, ...this.#waiting.takeDismissed()], ring: false };
    }
  }

  /** Something may have changed: another process rang, or time has passed. Serves whoever waits. */
  look(): BatchResult {
    const replies: Reply[] = [];
    try {
      // Outcomes of this process's own making were told when they happened.
      if (this.#parts.tx.begin(this.#now())) replies.push(...this.#outcomesKnown());
      const now = this.#now();
      const due = this.#dueDates.waitMs(this.#parts, now) === 0;
      if (due || this.#waiting.queues().some((queue) => this.#claims.anyReady(queue))) {
        return this.#written(() => this.#serve(replies), replies);
      }
    } catch {
      // Whoever waits goes on waiting; the next look tells whether the store is back.
    }
    return { replies, ring: false };
  }

  /** How long a look can be put off; Infinity if nobody waits or nothing is due. */
  waitMs(): number {
    return this.#waiting.empty ? Infinity : this.#dueDates.waitMs(this.#parts, this.#now());
  }

  close(): readonly Reply[] {
    const replies = this.#waiting.dismissAll();
    this.#parts.db.close();
    return replies;
  }

  /** A claim that finds nothing, and a declaration that is already there, need no write lock. */
  #isRead({ kind, request }: Call): boolean {
    if (READ_ONLY.has(kind)) return true;
    if (kind === "declare") return this.#operations.declaration(request.queue) !== undefined;
    if (kind !== "claim") return false;
    return !this.#claims.anyReady(request.queue) && this.#dueDates.waitMs(this.#parts, this.#now()) > 0;
  }

  #runAll(calls: readonly Call[], replies: Reply[]): void {
    for (const one of calls) {
      const value = this.#runOne(one);
      if (value !== WAITS) replies.push({ call: one.call, ...value });
    }
    this.#serve(replies);
  }

  #runOne(
    one: Call,
  ):
    | { readonly value: Replies[Kind] }
    | { readonly failure: { readonly code: "LEVELS_DIFFER"; readonly message: string } }
    | typeof WAITS {
    const { call, kind, request } = one;
    const { tx } = this.#parts;
    switch (kind) {
      case "declare": {
        const stored = this.#operations.declaration(request.queue) ?? this.#operations.declare(request);
        const same = request.levels === undefined || String(request.levels) === String(stored.levels);
        if (same) return { value: stored };
        // The caller makes the error out of the two lists.
        return { value: stored };
      }
      case "submit":
        return { value: { at: tx.wall, answers: request.flatMap((group) => submitGroup(this.#parts, group)) } };
      case "claim": {
        const granted = this.#claim(request);
        if (granted !== undefined) return { value: granted };
        this.#waiting.addClaim(call, request);
        return WAITS;
      }
      case "hold": {
        const held = hold(this.#parts, request);
        return { value: held === undefined ? undefined : { ...this.#began, ...held } };
      }
      case "renew": {
        const results = request.map(([lease, leaseMs, progress]) => renew(this.#parts, lease, leaseMs, progress));
        return { value: { ...this.#began, results } };
      }
      case "settle":
        return { value: request.map(([lease, ending]) => settle(this.#parts, lease, ending)) };
      case "cancel":
        return { value: this.#operations.cancel(this.#parts, request) };
      case "pause":
        return { value: this.#operations.pause(this.#parts, request) };
      case "revive":
        return { value: this.#operations.revive(this.#parts, request) };
      case "find":
        return { value: this.#inspection.find(request, this.#now()) };
      case "queues":
        return { value: this.#inspection.queues(request) };
      case "keys":
        return { value: this.#inspection.keys(request, this.#now()) };
      case "dead":
        return { value: this.#inspection.dead(request) };
      case "check":
        return { value: this.#inspection.check(this.#now()) };
      case "outcome": {
        const { known, outcome } = this.#inspection.outcome(request, this.#now());
        if (outcome !== undefined || !known) return { value: outcome };
        this.#waiting.addOutcome(call, tx.queues.find(request.queue).id, request);
        return WAITS;
      }
      case "abandon":
        this.#waiting.dismiss(request.call);
        return { value: undefined };
    }
  }

  /** Those who wait get what has become ready, first come first served. */
  #serve(replies: Reply[]): void {
    if (!this.#writing) return;
    this.#dueDates.settle(this.#parts);
    for (const { call, request } of this.#waiting.claims()) {
      const granted = this.#claim(request);
      if (granted !== undefined) replies.push({ call, value: granted });
    }
  }

  #claim(request: Requests["claim"]): Granted | undefined {
    if (!this.#writing) return undefined;
    this.#dueDates.settle(this.#parts);
    const grants = this.#claims.claim(this.#parts, request);
    return grants.length === 0 ? undefined : { ...this.#began, levels: this.#parts.tx.queues.find(request.queue).levels, grants };
  }

  /** Does the work in a transaction, then tells those who waited for items that ended in it. */
  #written(work: () => void, replies: Reply[]): BatchResult {
    this.#write(work);
    for (const { call } of replies) this.#waiting.forget(call);
    replies.push(...this.#waiting.takeDismissed());
    const { tx } = this.#parts;
    const ring = tx.untaken > 0 || tx.news;
    if (tx.ended.length > 0 && !this.#waiting.noOutcomes) {
      const ended = [...tx.ended];
      replies.push(...this.#read(() => this.#outcomesKnown(ended)));
    }
    return { replies, ring };
  }

  #outcomesKnown(of?: readonly { readonly queue: number; readonly id: string }[]): readonly Reply[] {
    const replies: Reply[] = [];
    for (const { call, request } of this.#waiting.outcomes(of)) {
      const { known, outcome } = this.#inspection.outcome(request, this.#now());
      if (outcome === undefined && known) continue;
      this.#waiting.forget(call);
      replies.push({ call, value: outcome });
    }
    return replies;
  }

  #began: Instant = { wall: 0, monotonic: 0 };
  #writing = false;

  #write<T>(work: () => T): T {
    const { db, tx, items } = this.#parts;
    beginWrite(db);
    try {
      this.#writing = true;
      this.#began = this.#now();
      tx.begin(this.#began);
      const result = work();
      if (tx.wall >= this.#forgetAt) {
        const forgotten = items.forgetExpired(tx.wall, FORGET_AT_A_TIME);
        this.#forgetAt = forgotten === FORGET_AT_A_TIME ? tx.wall : tx.wall + FORGET_EVERY_MS;
      }
      tx.finish();
      db.exec("COMMIT");
      return result;
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      tx.forget();
      throw error;
    } finally {
      this.#writing = false;
    }
  }

  #read<T>(work: () => T): T {
    this.#began = this.#now();
    this.#parts.tx.begin(this.#began);
    return work();
  }
}

const WAITS = Symbol("waits");
