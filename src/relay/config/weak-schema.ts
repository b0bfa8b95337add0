/**
 * Values as the original service read them: it turned one kind into another where it could, took nothing, zero and an
 * empty text for "not given", matched names without regard to case, and passed over names that it did not know.
 */
import { fillIn } from "./environment.ts";
import { type Fields, object, type ObjectOf } from "./fields.ts";
import { isObject, list, type Place, refused, type Refused, type Schema, shown, text } from "./schema.ts";

/** A whole number, or a text or flag that stands for one; undefined for zero. */
export function weakInteger(least: number, most: number = Number.MAX_SAFE_INTEGER): Schema<number | undefined> {
  const expected = `a whole number${most === Number.MAX_SAFE_INTEGER ? `, ${least} or more` : ` from ${least} to ${most}`}, or 0 for the default`;
  return {
    expected,
    read(value, at) {
      const given = numberOf(value, at);
      if (given === refused) return refused;
      if (given === 0) return undefined;
      const isRight = given !== undefined && Number.isSafeInteger(given) && given >= least && given <= most;
      return isRight ? given : at.refuse(expected, shown(value));
    },
  };
}

/** A text, or a number or flag that stands for one; undefined for an empty one. */
export function weakText(schema: Schema<string> = text()): Schema<string | undefined> {
  return {
    expected: schema.expected,
    read(value, at) {
      if (value === "") return undefined;
      if (typeof value === "number") return schema.read(String(value), at);
      return schema.read(typeof value === "boolean" ? String(Number(value)) : value, at);
    },
  };
}

/** A list; anything else is a list of that one. */
export function weakList<T>(entry: Schema<T>, least = 0): Schema<readonly T[]> {
  const entries = list(entry, least);
  return {
    expected: entries.expected,
    read(value, at) {
      const isNothing = value === "" || (isObject(value) && Object.keys(value).length === 0);
      return entries.read(Array.isArray(value) ? value : isNothing ? [] : [value], at);
    },
  };
}

/** An object whose names may be written in any case. One that is unknown is passed over, which is said. */
export function weakObject<F extends Fields>(kind: string, fields: F): Schema<ObjectOf<F>> {
  const strict = object(kind, fields);
  return {
    expected: strict.expected,
    read: (value, at) => strict.read(isObject(value) ? named(value, Object.keys(fields), at) : value, at),
  };
}

/** Finds one name in any case for a schema that knows it in one; all else is left as it is. */
export function anyCase<T>(name: string, schema: Schema<T>): Schema<T> {
  return {
    expected: schema.expected,
    read(value, at) {
      if (!isObject(value) || name in value) return schema.read(value, at);
      const respelt = Object.entries(value).map(([given, one]) => [given.toLowerCase() === name ? name : given, one]);
      return schema.read(Object.fromEntries(respelt), at);
    },
  };
}

function named(value: Readonly<Record<string, unknown>>, names: readonly string[], at: Place): object {
  const found = new Map<string, unknown>();
  for (const [given, one] of Object.entries(value)) {
    const name = names.includes(given) ? given : names.find((known) => known === given.toLowerCase());
    if (name === undefined && given.startsWith("x-")) continue;
    if (name === undefined)
      at.around.warnings.push(
        `${at.field(given).path}: unknown field, which is passed over; there are ${names.join(", ")}`,
      );
    else if (name !== given && (name in value || found.has(name)))
      at.around.warnings.push(`${at.field(given).path}: stands here a second time as ${name}, and is passed over`);
    else found.set(name, one);
  }
  return Object.fromEntries(found);
}

/** Undefined: it stands for no number. A text may have the prefix of another base, as in Go. */
function numberOf(value: unknown, at: Place): number | undefined | Refused {
  if (typeof value === "number") return Math.trunc(value);
  if (typeof value === "boolean") return Number(value);
  if (typeof value !== "string") return undefined;
  const filled = fillIn(value, at);
  if (filled === undefined) return refused;
  if (filled === "") return 0;
  const [, sign, digits] = /^([+-]?)(0x[0-9a-f]+|0b[01]+|0o?[0-7]*|[1-9]\d*)$/i.exec(filled) ?? [];
  if (digits === undefined) return undefined;
  const plain = digits.replace(/^0(?=[0-7])/, "0o");
  return (sign === "-" ? -1 : 1) * Number(plain);
}
