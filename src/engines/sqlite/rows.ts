import type { DatabaseSync, StatementSync, SQLInputValue, SQLOutputValue } from "node:sqlite";

/**
 * Rows come back as arrays, because that is the fastest form `node:sqlite` has, and are read by these few
 * functions, which also assert that the file holds what we wrote.
 */
export type Row = readonly SQLOutputValue[];

export class Statement {
  readonly #statement: StatementSync;

  constructor(db: DatabaseSync, sql: string) {
    this.#statement = db.prepare(sql);
    this.#statement.setReturnArrays(true);
  }

  /** A write. `get` does the same as `run` without building an object that says how many rows were changed. */
  run(...values: SQLInputValue[]): void {
    this.#statement.get(...values);
  }

  /** How many rows were changed. */
  change(...values: SQLInputValue[]): number {
    return Number(this.#statement.run(...values).changes);
  }

  get(...values: SQLInputValue[]): Row | undefined {
    return asRow(this.#statement.get(...values));
  }

  all(...values: SQLInputValue[]): readonly Row[] {
    return this.#statement.all(...values).map((row) => asRow(row) ?? []);
  }
}

/** Prepares a statement. */
export type Sql = (text: string) => Statement;

export function statementsOf(db: DatabaseSync): Sql {
  return (written) => new Statement(db, written);
}

export function integer(row: Row, index: number): number {
  const value = row[index];
  if (typeof value === "number") return value;
  throw new TypeError(`The store has ${typeof value} where a number belongs (column ${index}).`);
}

export function text(row: Row, index: number): string {
  const value = row[index];
  if (typeof value === "string") return value;
  throw new TypeError(`The store has ${typeof value} where a text belongs (column ${index}).`);
}

export function optionalInteger(row: Row, index: number): number | undefined {
  return row[index] === null ? undefined : integer(row, index);
}

export function optionalText(row: Row, index: number): string | undefined {
  return row[index] === null ? undefined : text(row, index);
}

export function body(row: Row, index: number): string | Uint8Array {
  const value = row[index];
  if (typeof value === "string" || value instanceof Uint8Array) return value;
  throw new TypeError(`The store has ${typeof value} where a payload belongs (column ${index}).`);
}

function asRow(value: unknown): Row | undefined {
  return Array.isArray(value) ? value : undefined;
}
