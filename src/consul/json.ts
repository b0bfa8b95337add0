import { BatonError } from "../domain/errors.ts";

/** What came from outside, looked at before it is believed. */
export type Fields = Readonly<Record<string, unknown>>;

export class Unexpected extends BatonError {
  constructor(rule: string) {
    super("STORE_UNAVAILABLE", `An answer is not as Consul gives it: ${rule}. Is the address that of Consul?`);
  }
}

export function fieldsOf(value: unknown): Fields {
  if (isFields(value)) return value;
  throw new Unexpected("there should be an object");
}

/** Consul writes null for an empty list. */
export function listOf(value: unknown): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw new Unexpected("there should be a list");
}

export function textOf(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw new Unexpected(`${name} should be a text`);
}

export function numberOf(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value === "number") return value;
  throw new Unexpected(`${name} should be a number`);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
