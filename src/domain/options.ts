/** What everybody who takes options does with them first. A slip in a name must not look like a default that was wanted. */
import { InvalidInput, show } from "./errors.ts";
import { nearestName } from "./nearest-name.ts";

/** Every name of a type of options. The compiler complains about one that is missing in such a list, and about one too many. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>;

/** Refuses names that the options do not have. `place` is where they stand in a larger input: `retry`. */
export function checkOptions<T extends object>(options: T, names: OptionNames<T>, place = ""): T {
  const known: Readonly<Record<string, true | undefined>> = names;
  if (!isObject(options)) {
    throw new InvalidInput(place === "" ? "options" : place, options, `an object with ${listed(Object.keys(known))}`);
  }
  for (const name of Object.keys(options)) {
    if (known[name] !== true) throw unknownName("option", name, Object.keys(known), place);
  }
  return options;
}

/** The same for the parameters of a URL. */
export function checkParameters(names: Iterable<string>, known: readonly string[]): void {
  for (const name of names) if (!known.includes(name)) throw unknownName("parameter", name, known, "");
}

/** Without those that are undefined, which must not hide what stands behind them in a spread. */
export function given<T extends object>(options: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  // Exactly those entries are left out that the type leaves out.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]: Exclude<T[Name], undefined>;
  };
}

export function checkFunction<T>(value: T, field: string, does: string): T {
  if (typeof value === "function") return value;
  throw new InvalidInput(field, value, `a function that ${does}`);
}

export function checkFlag(value: boolean | undefined, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value === "boolean") return value;
  throw new InvalidInput(field, value, "true or false");
}

/** A text is a list of its letters, too, which is never what was meant. */
export function checkList<T>(value: readonly T[], field: string, of: string): readonly T[] {
  const isList: boolean = Array.isArray(value);
  if (isList) return value;
  throw new InvalidInput(field, value, `a list of ${of}`);
}

/** Also one of another realm. */
export function checkSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal === undefined) return undefined;
  if (isObject(signal) && typeof signal.aborted === "boolean" && typeof signal.addEventListener === "function")
    return signal;
  throw new InvalidInput("signal", signal, "an AbortSignal");
}

function unknownName(kind: string, name: string, known: readonly string[], place: string): InvalidInput {
  const inPlace = (one: string): string => (place === "" ? one : `${place}.${one}`);
  const nearest = nearestName(name, known);
  const hint =
    known.length === 0
      ? "there are none here."
      : nearest === undefined
        ? `known are ${listed(known.map(inPlace))}.`
        : `did you mean ${show(inPlace(nearest))}?`;
  return new InvalidInput(
    inPlace(name),
    undefined,
    `one of ${listed(known)}`,
    `unknown ${kind} ${show(inPlace(name))}; ${hint}`,
  );
}

function listed(names: readonly string[]): string {
  return names.join(", ");
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
