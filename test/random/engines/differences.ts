import { inspect } from "node:util";
import { isSame } from "./answers.ts";

/** Where two answers differ, each place on a line: the rest of a long answer says nothing. */
export function differences(model: unknown, store: unknown, toleranceMs: number, path = "answer"): readonly string[] {
  if (isSame(model, store, toleranceMs)) return [];
  const pair = [model, store];
  if (pair.every(Array.isArray) || pair.every(isPlain)) {
    const names = [...new Set([...Object.keys(model as object), ...Object.keys(store as object)])];
    return names.flatMap((name) =>
      differences(
        Reflect.get(model as object, name),
        Reflect.get(store as object, name),
        toleranceMs,
        Array.isArray(model) ? `${path}[${name}]` : `${path}.${name}`,
      ),
    );
  }
  return [`${path}: the model says ${show(model)}, the store ${show(store)}`];
}

function isPlain(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function show(value: unknown): string {
  return inspect(value, { depth: 6, breakLength: Infinity });
}
