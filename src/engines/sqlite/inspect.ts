import type { DatabaseSync } from "node:sqlite";
import type { Instant } from "../../domain/clock.ts";
import type * as port from "../../engine/port.ts";
import { readAttempts, soFar, withAttempts } from "../../engine/attempts.ts";
import { assignedId } from "./assigned-id.ts";
import { readType } from "./items.ts";
import { readFailure } from "../../engine/stored-json.ts";
import { BLOCKED, IDLE, KEY_COLUMNS, type KeyRow, LEASED, READY, readKey } from "./key-row.ts";
import type { Requests } from "./messages.ts";
import { locate, type Operations } from "./operate.ts";
import type { Parts } from "./parts.ts";
import { body, integer, optionalText, type Row, type Sql, text } from "./rows.ts";
import { SCHEMA_VERSION } from "./schema.ts";
import type { QueueRow } from "./queue-table.ts";

/** A free page is reused; a file that is mostly free pages only looks large. */
const MANY_FREE_PAGES = 20_000;

/** Questions about the store. They change nothing and take no lock: what is due has happened before, if it could. */
export class Inspection {
  readonly #parts: Parts;
  readonly #operations: Operations;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #db: DatabaseSync;

  constructor(parts: Parts, operations: Operations) {
    const { db, sql } = parts;
    this.#db = db;
    this.#parts = parts;
    this.#operations = operations;
    this.#statements = prepare(sql);
  }

  queues(request: Requests["queues"]): readonly port.QueueReport[] {
    const names = this.#statements.queueNames.all().map((row) => text(row, 0));
    const wanted = request.queue === undefined ? names : names.filter((name) => name === request.queue);
    return wanted.map((name) => {
      const queue = this.#parts.tx.queues.find(name);
      const levels = queue.levels.map((level, rank) => ({ level, waiting: queue.waiting[rank] ?? 0 }));
      const waiting = levels.reduce((sum, level) => sum + level.waiting, 0);
      const { paused, delayed, running, dead } = queue;
      return { queue: name, paused, levels, waiting, delayed, running, dead };
    });
  }

  keys(request: port.KeyPageRequest, now: Instant): readonly port.KeyReport[] {
    const queue = this.#parts.tx.queues.find(request.queue);
    const page = request.leased === true ? this.#statements.leasedAfter : this.#statements.keysAfter;
    const rows = page.all(queue.id, request.after ?? "", request.limit);
    return rows.map((row) => this.#keyReport(readKey(row), now));
  }

  dead(request: port.PageRequest): readonly port.DeadReport[] {
    const queue = this.#parts.tx.queues.find(request.queue);
    const last = request.after === undefined ? undefined : this.#operations.findDead(queue, request.after);
    const after = last === undefined ? 0 : integer(last, 0);
    return this.#statements.deadAfter.all(queue.id, after, request.limit).map((row) => readDead(queue, row));
  }

  /** `pending`: whoever asks is told when it has ended. */
  outcome(request: Requests["outcome"], now: Instant): port.Outcome | "pending" | undefined {
    const queue = this.#parts.tx.queues.find(request.queue);
    const receipt = this.#parts.receipts.get(queue, request.id, now.wall);
    return receipt === undefined ? this.#findDead(request)?.outcome : (receipt.outcome ?? "pending");
  }

  find(request: Requests["find"], now: Instant): port.ItemReport | undefined {
    const { tx, items } = this.#parts;
    const queue = tx.queues.find(request.queue);
    const { receipt, outcome, item, key } = locate(this.#parts, queue, request.id, now.wall);
    if (receipt !== undefined && outcome !== undefined) {
      const level = queue.levels[receipt.level] ?? "";
      return endedReport({ id: request.id, key: receipt.key, level, submittedAt: receipt.submitted }, outcome);
    }
    if (item === undefined || key === undefined) return this.#findDead(request);
    const { seq } = item;
    const isHead = key.head === seq;
    const report: port.ItemReport = {
      id: request.id,
      key: key.name,
      level: queue.levels[item.level] ?? "",
      state: "waiting",
      attempt: item.attempt + (isHead ? key.attempt : 0),
      submittedAt: item.submitted,
      ...soFar(readAttempts(item.tried)),
    };
    if (isHead && key.state === LEASED && !key.held) {
      return { ...report, state: "running", running: this.#runningReport(key, now) };
    }
    const delayedDue = items.delayedDue(seq);
    if (delayedDue !== undefined) return { ...report, state: "delayed", dueAt: delayedDue };
    const due = isHead && key.state === BLOCKED ? key.at : item.due;
    return due > now.wall ? { ...report, dueAt: due } : report;
  }

  check(now: Instant): readonly port.Finding[] {
    const pragma = (name: string): unknown => this.#db.prepare(`PRAGMA ${name}`).get()?.[name];
    const version = String(this.#db.prepare("SELECT sqlite_version() AS v").get()?.["v"]);
    const findings: port.Finding[] = [
      { severity: "ok", subject: "SQLite", detail: `version ${version}, schema ${SCHEMA_VERSION}` },
      durability(Number(pragma("synchronous")), String(pragma("journal_mode"))),
      integrity(String(this.#db.prepare("PRAGMA quick_check(1)").get()?.["quick_check"])),
    ];
    const severity = "warning";
    const expired = integer(this.#statements.running.get(Math.floor(now.monotonic)) ?? [0], 0);
    if (expired > 0) {
      const detail = `${expired} lease(s) ran out and nobody took them over`;
      const advice = "Their workers crashed or were stopped. Start a worker; it takes the keys over at once.";
      findings.push({ severity, subject: "Leases", detail, advice });
    }
    const free = Number(pragma("freelist_count"));
    if (free > MANY_FREE_PAGES) {
      const detail = `${free} of ${String(pragma("page_count"))} pages are free`;
      const advice = "They are reused. To shrink the file, stop all processes and run VACUUM with the sqlite3 command.";
      findings.push({ severity, subject: "Size", detail, advice });
    }
    return findings;
  }

  #findDead({ queue: name, id }: Requests["find"]): port.ItemReport | undefined {
    const queue = this.#parts.tx.queues.find(name);
    const row = this.#operations.findDead(queue, id);
    if (row === undefined) return undefined;
    const found = this.#statements.deadAfter.get(queue.id, integer(row, 0) - 1, 1);
    if (found === undefined) return undefined;
    const { key, level, attempt, submittedAt, failure, at, attempts = [] } = readDead(queue, found);
    const outcome: port.Outcome = { state: "dead", at, attempt, failure, ...withAttempts(attempts) };
    return endedReport({ id, key, level, submittedAt }, outcome);
  }

  #keyReport(key: KeyRow, now: Instant): port.KeyReport {
    const { name, paused, waiting, delayed } = key;
    const report: port.KeyReport = { key: name, state: stateOf(key), paused, waiting, delayed };
    return key.state === LEASED ? { ...report, running: this.#runningReport(key, now) } : report;
  }

  #runningReport(key: KeyRow, now: Instant): port.RunningReport {
    const seq = key.held ? 0 : key.head;
    const item = seq === 0 ? undefined : this.#parts.items.get(seq);
    return {
      worker: key.worker ?? "",
      fence: key.fence,
      since: key.since,
      deadline: Math.round(now.wall + key.at - now.monotonic),
      attempt: item === undefined ? 0 : item.attempt + key.attempt,
      ...(key.progress === undefined ? {} : { progress: key.progress }),
      ...(item === undefined ? {} : { id: item.id ?? assignedId(seq) }),
    };
  }
}

function readDead(queue: QueueRow, row: Row): port.DeadReport {
  return {
    id: optionalText(row, 3) ?? assignedId(integer(row, 0)),
    key: text(row, 1),
    level: queue.levels[integer(row, 2)] ?? "",
    payload: { type: readType(row, 4), body: body(row, 5) },
    submittedAt: integer(row, 6),
    attempt: integer(row, 7),
    failure: readFailure(text(row, 8)),
    ...withAttempts(readAttempts(optionalText(row, 10))),
    at: integer(row, 9),
  };
}

function endedReport(
  item: Pick<port.ItemReport, "id" | "key" | "level" | "submittedAt">,
  outcome: port.Outcome,
): port.ItemReport {
  const { state, attempt, attempts = [] } = outcome;
  return { ...item, state, attempt, ...withAttempts(attempts), outcome };
}

function stateOf(key: KeyRow): port.KeyReport["state"] {
  switch (key.state) {
    case READY:
      return "ready";
    case LEASED:
      return key.held ? "held" : "running";
    case BLOCKED:
      return "blocked";
    case IDLE:
      return "idle";
    default:
      throw new TypeError(`The store has a key in an unknown state: ${key.state}.`);
  }
}

function integrity(damage: string): port.Finding {
  const subject = "Integrity";
  if (damage === "ok") return { severity: "ok", subject, detail: "quick check found no damage" };
  const advice = "Stop all processes, keep a copy of the file, restore a backup.";
  return { severity: "error", subject, detail: damage, advice };
}

/** SQLite's numbers for `PRAGMA synchronous`. */
function durability(synchronous: number, journal: string): port.Finding {
  const subject = "Durability";
  const setting = `synchronous ${["off", "normal"][synchronous] ?? "full"}, journal ${journal}`;
  if (synchronous >= 2) return { severity: "ok", subject, detail: `${setting}: accepted items survive power loss` };
  const advice = "Leave out ?synchronous=… to get the default, full.";
  return { severity: "warning", subject, detail: `${setting}: a power loss can lose the last accepted items`, advice };
}

function prepare(sql: Sql) {
  return {
    queueNames: sql("SELECT name FROM queue ORDER BY name"),
    keysAfter: sql(
      `SELECT ${KEY_COLUMNS} FROM key WHERE queue = ? AND name > ? AND (state > 0 OR paused = 1 OR delayed > 0) ORDER BY name LIMIT ?`,
    ),
    leasedAfter: sql(
      `SELECT ${KEY_COLUMNS} FROM key INDEXED BY key_due WHERE state >= 2 AND state = 2 AND queue = ? AND name > ? ORDER BY name LIMIT ?`,
    ),
    deadAfter: sql(
      "SELECT seq, key, level, id, type, body, submitted, attempt, failure, at, tried FROM dead WHERE queue = ? AND place > ? ORDER BY place LIMIT ?",
    ),
    running: sql("SELECT count(*) FROM key WHERE state >= 2 AND state = 2 AND at <= ?"),
  };
}
