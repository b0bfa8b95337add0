import { BatonError, InvalidInput, OutcomeUnknown } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import type { Submission, SubmitResult, Transaction } from "../../engine/port.ts";
import { describeFailure, queueThatIsGone, sqlState } from "./failure.ts";
import type { Row } from "./link.ts";
import type { Queues } from "./queues.ts";
import { entryOf, submitResult } from "./submissions.ts";

const COLUMNS = ["n", "code", "id", "key", "level", "at", "replaced"] as const;

/**
 * Submits within a transaction of the application, on the application's connection: accepted if it commits, as if never submitted if it does
 * not. The statement is one text in and plain columns out, because every library on top of PostgreSQL can do that.
 */
export async function submitWithin(
  transaction: Transaction,
  schema: string,
  queues: Queues,
  submissions: readonly Submission[],
): Promise<readonly SubmitResult[]> {
  if (isPool(transaction))
    throw new InvalidInput(
      "transaction",
      "a pool",
      "the client that BEGIN was sent on, as of pool.connect(): a pool sends each statement on any connection, and it commits by itself",
    );
  if (submissions.some(({ mode }) => mode === "strict"))
    throw new InvalidInput(
      "mode",
      "strict",
      "fifo or latest within a transaction: whether the key is busy is decided when the transaction has been committed",
    );
  const entries = submissions.map((submission) => {
    const { bytes, ...entry } = entryOf(queues, submission);
    return { ...entry, bytes: bytes === null ? null : Buffer.from(bytes).toString("base64") };
  });
  let answer: unknown;
  try {
    answer = await transaction.query(`SELECT * FROM ${schema}.submit_within($1) ORDER BY n`, [JSON.stringify(entries)]);
  } catch (error) {
    throw failureOf(error, queues);
  }
  const rows = rowsOf(answer);
  return submissions.map((submission, index) => {
    const row = rows[index];
    if (row === undefined) throw new InvalidInput("transaction", answer, "a client whose query() resolves with rows");
    return submitResult(queues, submission, row);
  });
}

/** One of node-postgres, or made after it, counts its connections. */
function isPool(transaction: Transaction): boolean {
  return "totalCount" in transaction && "idleCount" in transaction;
}

/** Libraries wrap what the server said, some of them more than once. What cannot be read is shown: whether it happened is not known. */
function failureOf(error: unknown, queues: Queues): BatonError {
  for (let said: unknown = error; isError(said); said = said.cause) {
    const gone = queueThatIsGone(said);
    if (gone !== undefined) return queues.miss(gone);
    if (sqlState(said) !== undefined || said instanceof BatonError) return describeFailure(said, "PostgreSQL");
  }
  const text = isError(error) ? error.message : String(error);
  return new OutcomeUnknown(`a submission within a transaction, whose query() failed (${text})`, { cause: error });
}

/** `{ rows }` of node-postgres, Kysely and Drizzle, or the rows themselves, of Prisma. Large numbers come as text, or as BigInt. */
function rowsOf(answer: unknown): readonly Row[] {
  const rows: unknown = typeof answer === "object" && answer !== null && "rows" in answer ? answer.rows : answer;
  if (!Array.isArray(rows)) return [];
  return rows.map((row: unknown) => {
    if (typeof row !== "object" || row === null) return [];
    return COLUMNS.map((name) => {
      const value: unknown = Reflect.get(row, name);
      if (name === "id" || name === "key" || name === "replaced" || value === null) return value ?? null;
      return Number(value);
    });
  });
}
