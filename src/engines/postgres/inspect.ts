import type {
  DeadReport,
  ItemReport,
  KeyPageRequest,
  KeyReport,
  Outcome,
  PageRequest,
  QueueReport,
  RunningReport,
} from "../../engine/port.ts";
import { readAttempts, soFar, withAttempts } from "../../engine/attempts.ts";
import { readFailure } from "../../engine/stored-json.ts";
import { payloadOf } from "./bodies.ts";
import type { Link, Row } from "./link.ts";
import type { DeclaredQueue } from "./queues.ts";
import { flag, integer, numbers, optionalInteger, optionalText, text, texts } from "./rows.ts";
import { BLOCKED, IDLE, LEASED, NOW, READY } from "./sql/functions.ts";
import { givenId } from "./step-answer.ts";

const RECEIPT = "r.state, r.ended, r.attempt, r.result_type, r.result, r.result_bytes, r.failure, r.missing, r.tried";

/** Questions about the store. They change nothing and wait for nobody. */
export class Inspection {
  readonly #link: Link;

  constructor(link: Link) {
    this.#link = link;
  }

  async queues(name: string | undefined): Promise<readonly QueueReport[]> {
    const s = this.#link.schema;
    const rows = await this.#link.query(
      "baton_queues",
      `SELECT q.name, q.paused, q.levels, c.waiting, coalesce(c.delayed, 0), coalesce(c.running, 0), coalesce(c.dead, 0)
       FROM ${s}.queue q LEFT JOIN ${s}.counter c ON c.queue = q.id WHERE $1::text IS NULL OR q.name = $1 ORDER BY q.name`,
      [name ?? null],
    );
    const reports = new Map<string, Row[]>();
    for (const row of rows) reports.set(text(row, 0), [...(reports.get(text(row, 0)) ?? []), row]);
    return [...reports].map(([queue, shards]) => queueReport(queue, shards));
  }

  async keys(queue: DeclaredQueue, { after, limit, leased }: KeyPageRequest): Promise<readonly KeyReport[]> {
    const s = this.#link.schema;
    const columns = `k.name, k.state, k.held, k.paused, k.waiting, k.delayed, k.worker, k.fence, k.since, k.at, k.progress, k.id, k.level, k.ord, i.attempt, i.id`;
    const item = `LEFT JOIN ${s}.item i ON k.state = ${LEASED} AND NOT k.held AND i.key = k.id AND i.level = k.level AND i.ord = k.ord`;
    const [name, keys, which] =
      leased === true
        ? [
            "leased",
            `(SELECT DISTINCT u.kid FROM ${s}.timer t, unnest(t.keys) u(kid)) u JOIN ${s}.key k ON k.id = u.kid`,
            `k.state = ${LEASED}`,
          ]
        : ["keys", `${s}.key k`, `(k.state > ${IDLE} OR k.paused OR k.delayed > 0)`];
    const rows = await this.#link.query(
      `baton_${name}`,
      `SELECT ${columns} FROM ${keys} ${item} WHERE k.queue = $1 AND k.name > $2 AND ${which} ORDER BY k.name LIMIT $3`,
      [queue.id, after ?? "", limit],
    );
    return rows.map(keyReport);
  }

  async dead(queue: DeclaredQueue, { after, limit }: PageRequest): Promise<readonly DeadReport[]> {
    const s = this.#link.schema;
    const rows = await this.#link.query(
      "baton_dead",
      `SELECT id, key, level, at, attempt, submitted, failure, type, body, bytes, tried FROM ${s}.dead WHERE queue = $1
       AND place > coalesce((SELECT place FROM ${s}.dead WHERE queue = $1 AND id = $2), 0) ORDER BY place LIMIT $3`,
      [queue.id, after ?? null, limit],
    );
    return rows.map((row) => deadReport(queue, row));
  }

  /** Of those that are remembered. Undefined: it has not ended. */
  async outcomes(queue: DeclaredQueue, ids: readonly string[]): Promise<ReadonlyMap<string, Outcome | undefined>> {
    const s = this.#link.schema;
    const rows = await this.#link.query(
      "baton_outcomes",
      `SELECT r.id, ${RECEIPT} FROM ${s}.receipt r WHERE r.queue = $1 AND r.id = ANY ($2) AND (r.expires IS NULL OR r.expires > ${NOW})
       UNION ALL SELECT d.id, 'dead', d.at, d.attempt, NULL, NULL, NULL, d.failure, NULL, d.tried FROM ${s}.dead d
       WHERE d.queue = $1 AND d.id = ANY ($2) AND NOT d.remembered`,
      [queue.id, [...ids]],
    );
    return new Map(rows.map((row) => [text(row, 0), readOutcome(row, 1)]));
  }

  async find(queue: DeclaredQueue, id: string): Promise<ItemReport | undefined> {
    const s = this.#link.schema;
    const [ended] = await this.#link.query(
      "baton_find_ended",
      `SELECT ${RECEIPT}, r.key, r.level, r.submitted FROM ${s}.receipt r
       WHERE r.queue = $1 AND r.id = $2 AND r.state IS NOT NULL AND (r.expires IS NULL OR r.expires > ${NOW})
       UNION ALL SELECT 'dead', d.at, d.attempt, NULL, NULL, NULL, d.failure, NULL, d.tried, d.key, d.level, d.submitted FROM ${s}.dead d
       WHERE d.queue = $1 AND d.id = $2 AND NOT d.remembered`,
      [queue.id, id],
    );
    const outcome = ended === undefined ? undefined : readOutcome(ended, 0);
    if (ended !== undefined && outcome !== undefined) {
      const { state, attempt, attempts = [] } = outcome;
      const level = queue.levels[integer(ended, 10)] ?? "";
      const report = { id, key: text(ended, 9), level, state, attempt, submittedAt: integer(ended, 11) };
      return { ...report, ...withAttempts(attempts), outcome };
    }
    const [row] = await this.#link.query(
      "baton_find",
      `SELECT k.name, w.level, coalesce(i.attempt, d.attempt), coalesce(i.submitted, d.submitted), CASE WHEN i.due > ${NOW} THEN i.due ELSE 0 END, d.due,
         k.state = ${LEASED} AND NOT k.held AND k.level = w.level AND k.ord = w.ord, k.worker, k.fence, k.since, k.at, k.progress, coalesce(i.tried, d.tried)
       FROM ${s}.locate($1, $2) w JOIN ${s}.key k ON k.id = w.kid
       LEFT JOIN ${s}.item i ON i.key = k.id AND i.level = w.level AND i.ord = w.ord
       LEFT JOIN ${s}.delayed d ON d.n = -w.ord WHERE i.key IS NOT NULL OR d.n IS NOT NULL
       UNION ALL SELECT d.key, d.level, d.attempt, d.submitted, 0, d.due, false, NULL, 0, 0, 0, NULL, d.tried
       FROM ${s}.receipt r JOIN ${s}.delayed d ON d.n = -r.ord WHERE r.queue = $1 AND r.id = $2 AND NOT d.counted AND r.state IS NULL`,
      [queue.id, id],
    );
    return row === undefined ? undefined : liveReport(queue, id, row);
  }
}

function deadReport(queue: DeclaredQueue, row: Row): DeadReport {
  return {
    id: text(row, 0),
    key: text(row, 1),
    level: queue.levels[integer(row, 2)] ?? "",
    at: integer(row, 3),
    attempt: integer(row, 4),
    submittedAt: integer(row, 5),
    failure: readFailure(text(row, 6)),
    ...withAttempts(readAttempts(optionalText(row, 10))),
    payload: payloadOf(row[7], row[8], row[9]),
  };
}

function liveReport(queue: DeclaredQueue, id: string, row: Row): ItemReport {
  const attempt = integer(row, 2);
  const report: ItemReport = {
    id,
    key: text(row, 0),
    level: queue.levels[integer(row, 1)] ?? "",
    state: "waiting",
    attempt,
    submittedAt: integer(row, 3),
    ...soFar(readAttempts(optionalText(row, 12))),
  };
  if (flag(row, 6)) {
    return { ...report, state: "running", attempt: attempt + 1, running: runningReport(row, 7, attempt + 1, id) };
  }
  const delayed = optionalInteger(row, 5);
  if (delayed !== undefined) return { ...report, state: "delayed", dueAt: delayed };
  const due = integer(row, 4);
  return due > 0 ? { ...report, dueAt: due } : report;
}

/** From worker, fence, since, deadline and progress, in this order. */
function runningReport(row: Row, from: number, attempt: number, id: string | undefined): RunningReport {
  const progress = optionalInteger(row, from + 4);
  return {
    worker: optionalText(row, from) ?? "",
    fence: integer(row, from + 1),
    since: integer(row, from + 2),
    deadline: integer(row, from + 3),
    attempt,
    ...(progress === undefined ? {} : { progress }),
    ...(id === undefined ? {} : { id }),
  };
}

function keyReport(row: Row): KeyReport {
  const state = integer(row, 1);
  const held = flag(row, 2);
  const report: KeyReport = {
    key: text(row, 0),
    state: stateName(state, held),
    paused: flag(row, 3),
    waiting: integer(row, 4),
    delayed: integer(row, 5),
  };
  if (state !== LEASED) return report;
  if (held) return { ...report, running: runningReport(row, 6, 0, undefined) };
  const id = optionalText(row, 15) ?? givenId(integer(row, 11), integer(row, 12), integer(row, 13));
  return { ...report, running: runningReport(row, 6, (optionalInteger(row, 14) ?? 0) + 1, id) };
}

function stateName(state: number, held: boolean): KeyReport["state"] {
  switch (state) {
    case READY:
      return "ready";
    case LEASED:
      return held ? "held" : "running";
    case BLOCKED:
      return "blocked";
    default:
      return "idle";
  }
}

function queueReport(queue: string, shards: readonly Row[]): QueueReport {
  const [first] = shards;
  if (first === undefined) throw new Error("A report has a row.");
  const sum = (index: number): number => shards.reduce((total, row) => total + integer(row, index), 0);
  const counts = shards.map((row) => (row[3] === null ? [] : numbers(row, 3)));
  const levels = texts(first, 2).map((level, rank) => ({
    level,
    waiting: counts.reduce((total, count) => total + (count[rank] ?? 0), 0),
  }));
  const waiting = levels.reduce((total, level) => total + level.waiting, 0);
  return { queue, paused: flag(first, 1), levels, waiting, delayed: sum(4), running: sum(5), dead: sum(6) };
}

function readOutcome(row: Row, from: number): Outcome | undefined {
  const state = optionalText(row, from);
  if (state === undefined) return undefined;
  if (state !== "done" && state !== "dead" && state !== "cancelled" && state !== "replaced")
    throw new TypeError(`The store has an unknown outcome: ${state}.`);
  const failure = optionalText(row, from + 6);
  const resultMissing = optionalText(row, from + 7);
  const hasResult = row[from + 3] !== null;
  return {
    state,
    at: integer(row, from + 1),
    attempt: integer(row, from + 2),
    ...(hasResult ? { result: payloadOf(row[from + 3], row[from + 4], row[from + 5]) } : {}),
    ...(resultMissing === undefined ? {} : { resultMissing }),
    ...(failure === undefined || state !== "dead" ? {} : { failure: readFailure(failure) }),
    ...withAttempts(readAttempts(optionalText(row, from + 8))),
  };
}
