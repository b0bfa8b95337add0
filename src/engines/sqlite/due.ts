import type { Instant } from "../../domain/clock.ts";
import { lostAttempt } from "../../engine/attempts.ts";
import { BLOCKED, type KeyRow, LEASED, READY } from "./key-row.ts";
import type { Parts } from "./parts.ts";
import { integer, optionalInteger, type Row, type Sql } from "./rows.ts";
import { uncover } from "./run.ts";
import type { Transaction } from "./transaction.ts";

/** So many of a kind in one transaction; the rest in the next, so that others get their turn. */
const AT_A_TIME = 500;

/** How long a key is kept for whoever waits to hold it: they hear of it in milliseconds, if they are still there. */
const KEPT_MS = 250;

/** Everything that happens because time passes: leases run out, back-offs end, delayed items arrive. */
export class DueDates {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(sql: Sql) {
    this.#statements = prepare(sql);
  }

  /**
   * The monotonic clock starts anew at a boot, and no process survives one: a lease that was given later than now
   * belongs to an earlier boot and has ended.
   */
  endLeasesOfAnotherBoot(monotonic: number): void {
    this.#statements.ofAnotherBoot.run(Math.ceil(monotonic));
  }

  /** How long until something is due; 0 if it is already; Infinity if nothing will be. */
  waitMs(parts: Parts, now: Instant): number {
    const delayed = parts.items.nextDelayed();
    const wait = Math.min(
      this.#nextOf(LEASED) - Math.floor(now.monotonic),
      this.#nextOf(BLOCKED) - Math.floor(now.wall),
      delayed === undefined ? Infinity : delayed - Math.floor(now.wall),
      this.#keptMs(Math.floor(now.monotonic)),
    );
    return Math.max(0, wait);
  }

  #nextOf(state: number): number {
    const row = this.#statements.next.get(state);
    return row === undefined ? Infinity : integer(row, 0);
  }

  /** Until the first key that is kept for a hold is not any longer. */
  #keptMs(monotonic: number): number {
    const row = this.#statements.nextKept.get() ?? [null, null];
    const first = optionalInteger(row, 0);
    const last = optionalInteger(row, 1);
    if (first === undefined || last === undefined) return Infinity;
    return last > monotonic + KEPT_MS ? 0 : first - monotonic;
  }

  /** Lets happen what is due. */
  settle(parts: Parts): void {
    const { tx, items, line } = parts;
    const now: Instant = { wall: tx.wall, monotonic: tx.monotonic };
    if (this.waitMs(parts, now) > 0) return;
    tx.keys.flush();
    for (const { seq, key: keyId, front } of items.dueDelayed(tx.wall, AT_A_TIME)) {
      items.removeDelayed(seq);
      const key = tx.keys.get(keyId);
      const item = items.get(seq);
      if (key === undefined || item === undefined) throw new Error(`Delayed item ${seq} has no key.`);
      const queue = tx.queues.get(key.queue);
      tx.countDelayed(queue, key, -1);
      line.arrive(queue, key, seq, item.level, front);
    }
    for (const key of keysOf(parts, this.#statements.due.all(BLOCKED, tx.wall))) line.unblock(key);
    for (const key of keysOf(parts, this.#statements.due.all(LEASED, tx.monotonic))) expire(parts, key);
    // Longer than anything is kept: by the clock of an earlier boot.
    for (const key of keysOf(parts, this.#statements.keptInVain.all(tx.monotonic, tx.monotonic + KEPT_MS))) {
      key.wanted = false;
      tx.keys.save(key);
      if (key.state === READY) tx.opened.push(key);
    }
  }
}

function keysOf({ tx }: Parts, rows: readonly Row[]): readonly KeyRow[] {
  return rows.map((row) => tx.keys.get(integer(row, 0))).filter((key) => key !== undefined);
}

/** A lease ends: if somebody waits to hold the key, it is kept for them. */
export function letGo(tx: Transaction, key: KeyRow): void {
  key.held = false;
  key.fence = 0;
  key.worker = undefined;
  key.progress = undefined;
  if (!key.wanted) return;
  key.at = tx.monotonic + KEPT_MS;
  tx.stirred.add(key.queue);
}

/** Nobody renewed it in time. */
export function expire(parts: Parts, key: KeyRow): void {
  const { tx } = parts;
  tx.lost.push({ queue: tx.queues.get(key.queue).name, key: key.name, fence: key.fence });
  const ran = !key.held && key.head !== 0;
  if (ran) key.alone = Math.max(key.alone, key.covered);
  if (ran && !key.cancel) parts.endings.note(key, lostAttempt);
  uncover(parts, key);
  endLease(parts, key);
}

/** The lease is over, and its item, if it had one, waits again where it stood. */
export function endLease(parts: Parts, key: KeyRow): void {
  const { tx, line, endings } = parts;
  const queue = tx.queues.get(key.queue);
  const ran = !key.held && key.head !== 0;
  letGo(tx, key);
  if (!ran) return line.resume(key);
  tx.queues.touch(queue).running -= 1;
  if (key.cancel) {
    endings.endHead(queue, key, { state: "cancelled" });
    return line.promote(key);
  }
  tx.count(queue, key, key.level, 1);
  line.resume(key);
}

/** That the state is at least 2 says that the index has the row. */
const DUE = "FROM key INDEXED BY key_due WHERE state >= 2 AND state = ?";
const KEPT = "FROM key INDEXED BY key_wanted WHERE wanted = 1 AND state < 2";

function prepare(sql: Sql) {
  return {
    next: sql(`SELECT at ${DUE} ORDER BY at LIMIT 1`),
    due: sql(`SELECT id ${DUE} AND at <= ? ORDER BY at LIMIT ${AT_A_TIME}`),
    nextKept: sql(`SELECT min(at), max(at) ${KEPT}`),
    keptInVain: sql(`SELECT id ${KEPT} AND (at <= ? OR at > ?) LIMIT ${AT_A_TIME}`),
    ofAnotherBoot: sql("UPDATE key SET at = 0 WHERE state >= 2 AND state = 2 AND granted > ?"),
  };
}
