/** Objects: named fields, of which some may be left out. */
import { show } from "../../domain/errors.ts";
import { nearestName } from "../../domain/nearest-name.ts";
import { isObject, kindOf, type Place, refused, type Refused, type Schema, shown } from "./schema.ts";

export interface Field<T> {
  readonly schema: Schema<T>;
  /** Undefined: the field is needed. */
  readonly fallback: { readonly value: T } | undefined;
}

export type Fields = Readonly<Record<string, Schema<unknown> | Field<unknown>>>;
type Value<F> = F extends Field<infer T> ? T : F extends Schema<infer T> ? T : never;

export type ObjectOf<F extends Fields> = { readonly [Name in keyof F]: Value<F[Name]> };

/** May be left out. */
export function optional<T>(schema: Schema<T>): Field<T | undefined> {
  return { schema, fallback: { value: undefined } };
}

export function withDefault<T>(schema: Schema<T>, value: NoInfer<T>): Field<T> {
  return { schema, fallback: { value } };
}

/** @param kind what such an object is called in messages */
export function object<F extends Fields>(kind: string, fields: F): Schema<ObjectOf<F>> {
  return {
    expected: kind,
    read(value, at) {
      if (!isObject(value)) return at.refuse(kind, kindOf(value));
      const problems = at.problems.length;
      for (const name of Object.keys(value)) {
        if (!Object.hasOwn(fields, name))
          at.field(name).refuse(
            `no such field in ${kind}`,
            name,
            `unknown field ${show(name)}; ${hint(kind, name, fields)}`,
          );
      }
      const read = Object.entries(fields).map(([name, field]) => [name, readField(value, name, field, at)] as const);
      if (at.problems.length > problems) return refused;
      // Every field was read by its own schema just now, which the compiler cannot follow through a list of entries.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return Object.fromEntries(read) as ObjectOf<F>;
    },
  };
}

/** Objects of several kinds, told apart by one of their fields. */
export function variants<Kinds extends Readonly<Record<string, Schema<unknown>>>>(
  field: string,
  kinds: Kinds,
): Schema<Kinds[keyof Kinds] extends Schema<infer T> ? T : never> {
  type Result = Kinds[keyof Kinds] extends Schema<infer T> ? T : never;
  const names = Object.keys(kinds).join(", ");
  const expected = `an object whose ${field} is one of ${names}`;
  return {
    expected,
    read(value, at) {
      if (!isObject(value)) return at.refuse(expected, kindOf(value));
      const kind = value[field];
      const schema = typeof kind === "string" && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
      if (schema === undefined) return at.field(field).refuse(`one of ${names}`, shown(kind));
      // The schema is one of the kinds.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      return schema.read(value, at) as Result | Refused;
    },
  };
}

function readField(value: Readonly<Record<string, unknown>>, name: string, field: Fields[string], at: Place): unknown {
  const { schema, fallback } = "schema" in field ? field : { schema: field, fallback: undefined };
  // In YAML a name without a value is null, and means that it was left out.
  const given = Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
  if (given !== undefined) return schema.read(given, at.field(name));
  return fallback === undefined ? at.field(name).refuse(schema.expected, "nothing") : fallback.value;
}

function hint(kind: string, name: string, fields: Fields): string {
  const nearest = nearestName(name, Object.keys(fields));
  return nearest === undefined
    ? `the fields of ${kind} are ${Object.keys(fields).join(", ")}`
    : `did you mean ${show(nearest)}?`;
}
