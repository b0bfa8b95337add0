/** What engines keep as JSON, read back. It was checked before it was written; whoever changed it by hand is told. */
import type { Failure } from "../domain/failure.ts";

type Headers = Readonly<Record<string, string>>;

export function readHeaders(json: string): Headers {
  const value: unknown = JSON.parse(json);
  if (isHeaders(value)) return value;
  throw new TypeError("The store has no headers where some belong.");
}

export function readFailure(json: string): Failure {
  const value: unknown = JSON.parse(json);
  if (isFailure(value)) return value;
  throw new TypeError("The store has no failure where one belongs.");
}

function isHeaders(value: unknown): value is Headers {
  return typeof value === "object" && value !== null && Object.values(value).every((one) => typeof one === "string");
}

function isFailure(value: unknown): value is Failure {
  return typeof value === "object" && value !== null && "message" in value && typeof value.message === "string";
}
