import { inspect, isDeepStrictEqual } from "node:util";
import { isError } from "../domain/realms.ts";

/** A promise of the engine that was not kept. The message says which, and what was found instead. */
export class NotConforming extends Error {
  override readonly name = "NotConforming";
}

/** The case asks for what the engine says that it has not. */
export class LeftOut extends Error {
  override readonly name = "LeftOut";
}

export function ok(condition: boolean, promise: string): asserts condition {
  if (!condition) throw new NotConforming(`${promise}.`);
}

export function equal<T>(actual: T, expected: T, promise: string): void {
  if (isDeepStrictEqual(actual, expected)) return;
  throw new NotConforming(`${promise}: expected ${show(expected)}, found ${show(actual)}.`);
}

export function atLeast(actual: number, least: number, promise: string): void {
  if (!(actual >= least)) throw new NotConforming(`${promise}: expected at least ${least}, found ${actual}.`);
}

export function atMost(actual: number, most: number, promise: string): void {
  if (!(actual <= most)) throw new NotConforming(`${promise}: expected at most ${most}, found ${actual}.`);
}

/** What must be there, so that the case can go on with it. */
export function present<T>(value: T | undefined, promise: string): T {
  if (value === undefined) throw new NotConforming(`${promise}: expected a value, found none.`);
  return value;
}

/** The code of the error with which the call is refused. */
export async function refusedWith(call: Promise<unknown>, code: string, promise: string): Promise<void> {
  let value: unknown;
  try {
    value = await call;
  } catch (error) {
    const found: unknown = isError(error) ? Reflect.get(error, "code") : undefined;
    if (found === code) return;
    throw new NotConforming(`${promise}: expected an error with code ${code}, found ${show(error)}.`, { cause: error });
  }
  throw new NotConforming(`${promise}: expected an error with code ${code}, but the call gave ${show(value)}.`);
}

function show(value: unknown): string {
  return inspect(value, { depth: 6, breakLength: 120, maxArrayLength: 20, maxStringLength: 200 });
}
