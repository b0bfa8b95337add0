import type { Row } from "./link.ts";

/** Rows come back as arrays and are read by these few functions, which also assert that the store holds what we wrote. */
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

export function flag(row: Row, index: number): boolean {
  return row[index] === true;
}

export function optionalInteger(row: Row, index: number): number | undefined {
  return row[index] === null ? undefined : integer(row, index);
}

export function optionalText(row: Row, index: number): string | undefined {
  return row[index] === null ? undefined : text(row, index);
}

export function texts(row: Row, index: number): readonly string[] {
  const value = row[index];
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value;
  throw new TypeError(`The store has no list of texts where one belongs (column ${index}).`);
}

export function numbers(row: Row, index: number): readonly number[] {
  const value = row[index];
  if (!Array.isArray(value))
    throw new TypeError(`The store has no list of numbers where one belongs (column ${index}).`);
  return value.map(Number);
}
