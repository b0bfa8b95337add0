/**
 * What engines keep as JSON, read back. It was checked before it was written; whoever changed it by hand has damaged one item, and nothing here
 * fails because of that: an item says that its headers are damaged when they are asked for, and a failure says so itself.
 */
import type { Failure } from "../domain/failure.ts";

type Headers = Readonly<Record<string, string>>;

/** As they belong into an item. */
export interface ReadHeaders {
  readonly headers: Headers | undefined;
  readonly damage?: string;
}

const NONE: ReadHeaders = { headers: undefined };
const SHOWN = 100;

/** @param json undefined: the item has none */
export function readHeaders(json: string | undefined): ReadHeaders {
  if (json === undefined) return NONE;
  const value = parsed(json);
  if (isHeaders(value)) return { headers: value };
  return { headers: undefined, damage: `The store has no headers where some belong, but ${shown(json)}.` };
}

export function readFailure(json: string): Failure {
  const value = parsed(json);
  if (isFailure(value)) return value;
  return { message: `Why it failed cannot be read: the store has ${shown(json)}.`, code: "STORE_CORRUPT" };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function shown(json: string): string {
  return JSON.stringify(json.length > SHOWN ? `${json.slice(0, SHOWN)}…` : json);
}

function isHeaders(value: unknown): value is Headers {
  return typeof value === "object" && value !== null && Object.values(value).every((one) => typeof one === "string");
}

function isFailure(value: unknown): value is Failure {
  return typeof value === "object" && value !== null && "message" in value && typeof value.message === "string";
}
