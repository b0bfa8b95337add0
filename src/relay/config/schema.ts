/**
 * A description of values that reads them: each kind of value says what it expects, finds every problem and not only
 * the first, and gives back what it read in the form that the program works with. Types are derived from the
 * description.
 */
import { show } from "../../domain/errors.ts";
import { type Environment, fillIn } from "./environment.ts";

export interface Problem {
  /** `sources[0].queue`; empty for the whole file. */
  readonly path: string;
  readonly expected: string;
  readonly found: string;
  /** What is wrong, in a sentence for people. */
  readonly message: string;
}

/** What comes with the file. */
export interface Surroundings {
  readonly environment: Environment;
  /** Where relative paths in the file begin. */
  readonly folder: string;
  /** What can only be looked at by loading it. Looked at whatever else is wrong, so that all problems are named. */
  readonly later: (() => Promise<unknown>)[];
  /** What is odd, and works all the same. */
  readonly warnings: string[];
}

/** Where in the file a value stands. */
export class Place {
  readonly path: string;
  readonly around: Surroundings;
  readonly problems: Problem[];

  constructor(path: string, around: Surroundings, problems: Problem[]) {
    this.path = path;
    this.around = around;
    this.problems = problems;
  }

  field(name: string): Place {
    const plain = /^[A-Za-z_][\w-]*$/.test(name);
    const step = plain ? `${this.path === "" ? "" : "."}${name}` : `[${show(name)}]`;
    return new Place(this.path + step, this.around, this.problems);
  }

  entry(index: number): Place {
    return new Place(`${this.path}[${index}]`, this.around, this.problems);
  }

  /** @param message where "expected this, found that" is not how a person would say it */
  refuse(expected: string, found: string, message = `expected ${expected}; found ${found}`): typeof refused {
    this.problems.push({ path: this.path, expected, found, message });
    return refused;
  }
}

/** In place of a value that could not be read. The place has been told why. */
export const refused: unique symbol = Symbol("refused");
export type Refused = typeof refused;

export interface Schema<T> {
  readonly expected: string;
  read(value: unknown, at: Place): T | Refused;
}

export type Read<S> = S extends Schema<infer T> ? T : never;

/** A text, with variables of the environment filled in. */
export function text(
  expected = "a text",
  isRight: (text: string) => boolean = (given) => given !== "",
): Schema<string> {
  return {
    expected,
    read(value, at) {
      if (typeof value !== "string") return at.refuse(expected, shown(value));
      const filled = fillIn(value, at);
      if (filled === undefined) return refused;
      return isRight(filled) ? filled : at.refuse(expected, foundText(value, filled));
    },
  };
}

/** A text that is never shown. */
export function secret(expected: string, isRight: (text: string) => boolean): Schema<string> {
  return {
    expected,
    read(value, at) {
      if (typeof value !== "string") return at.refuse(expected, kindOf(value));
      const filled = fillIn(value, at);
      if (filled === undefined) return refused;
      return isRight(filled) ? filled : at.refuse(expected, `another text of ${filled.length} characters`);
    },
  };
}

/** A whole number; as a text only out of the environment. */
export function integer(least: number, most: number = Number.MAX_SAFE_INTEGER): Schema<number> {
  const bound = most === Number.MAX_SAFE_INTEGER ? `, ${least} or more` : ` from ${least} to ${most}`;
  const expected = `a whole number${bound}`;
  return {
    expected,
    read(value, at) {
      const given = fromEnvironment(value, at, (filled) => (/^-?\d+$/.test(filled) ? Number(filled) : undefined));
      if (given === refused) return refused;
      const isRight = typeof given === "number" && Number.isSafeInteger(given) && given >= least && given <= most;
      return isRight ? given : at.refuse(expected, shown(value));
    },
  };
}

export const flag: Schema<boolean> = {
  expected: "true or false",
  read(value, at) {
    const given = fromEnvironment(value, at, (filled) => ({ true: true, false: false })[filled]);
    if (given === refused || typeof given === "boolean") return given;
    return at.refuse(this.expected, shown(value));
  },
};

export function oneOf<const Names extends readonly string[]>(...names: Names): Schema<Names[number]> {
  const expected = names.length === 1 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} or ${names.at(-1) ?? ""}`;
  const isName = (given: string): given is Names[number] => names.includes(given);
  return {
    expected,
    read(value, at) {
      if (typeof value !== "string") return at.refuse(expected, shown(value));
      const filled = fillIn(value, at);
      if (filled === undefined) return refused;
      return isName(filled) ? filled : at.refuse(expected, foundText(value, filled));
    },
  };
}

export function list<T>(entry: Schema<T>, least = 0): Schema<readonly T[]> {
  const expected = `a list${least > 0 ? ` of at least ${least}` : ""}, each entry ${entry.expected}`;
  return {
    expected,
    read(value, at) {
      if (!Array.isArray(value) || value.length < least) return at.refuse(expected, kindOf(value));
      const entries = value.map((one: unknown, index) => entry.read(one, at.entry(index)));
      const read = entries.filter((one): one is T => one !== refused);
      return read.length === entries.length ? read : refused;
    },
  };
}

/**
 * Names of the user's choice, each with a value of one kind.
 *
 * @param nameRule what a name is to be instead; undefined for one that is right
 */
export function record<T>(
  entry: Schema<T>,
  nameRule: (name: string) => string | undefined = () => undefined,
): Schema<ReadonlyMap<string, T>> {
  const expected = `names, each with ${entry.expected}`;
  return {
    expected,
    read(value, at) {
      if (!isObject(value)) return at.refuse(expected, kindOf(value));
      const entries = Object.entries(value).map(([name, one]) => {
        const rule = nameRule(name);
        if (rule !== undefined) at.field(name).refuse(rule, name);
        const read = entry.read(one, at.field(name));
        return [name, rule === undefined ? read : refused] as const;
      });
      const read = entries.filter((pair): pair is readonly [string, T] => pair[1] !== refused);
      return read.length === entries.length ? new Map(read) : refused;
    },
  };
}

/** Further reading of what was read: into another form, or to find what is wrong with the whole. */
export function convert<T, Result>(
  schema: Schema<T>,
  into: (value: T, at: Place) => Result | Refused,
  expected: string = schema.expected,
): Schema<Result> {
  return {
    expected,
    read(value, at) {
      const read = schema.read(value, at);
      return read === refused ? refused : into(read, at);
    },
  };
}

/** A short form beside a full one: the first, if the value is of its kind. */
export function either<A, B>(
  isFirst: (value: unknown) => boolean,
  first: Schema<A>,
  second: Schema<B>,
  expected = `${first.expected}, or ${second.expected}`,
): Schema<A | B> {
  return {
    expected,
    read(value, at) {
      const before = at.problems.length;
      const read = (isFirst(value) ? first : second).read(value, at);
      // A value that is wrong as a whole is told what else it might have been.
      for (const [index, { path, found }] of at.problems.entries()) {
        if (index >= before && path === at.path)
          at.problems[index] = { path, expected, found, message: `expected ${expected}; found ${found}` };
      }
      return read;
    },
  };
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isText(value: unknown): boolean {
  return typeof value === "string";
}

/** Only the kind: what stands inside has a path of its own, and a text in the wrong place may be a secret. */
export function kindOf(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (value === undefined || value === null) return "nothing";
  return isObject(value) ? "an object" : `a ${typeof value === "string" ? "text" : typeof value}`;
}

/** The value itself where it is a single one, without the password that a URL may have. */
export function shown(value: unknown): string {
  if (typeof value === "string") return show(value.replace(/(^|\/\/)\S*@/, "$1…@"));
  return typeof value === "object" ? kindOf(value) : show(value);
}

function fromEnvironment(value: unknown, at: Place, parse: (filled: string) => unknown): unknown {
  if (typeof value !== "string" || !value.includes("${")) return value;
  const filled = fillIn(value, at);
  return filled === undefined ? refused : (parse(filled) ?? value);
}

/** What came out of the environment may be a secret: the variable is named, not its value. */
function foundText(written: string, filled: string): string {
  return written === filled ? shown(written) : `${shown(written)} with another value`;
}
