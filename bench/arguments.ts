import { parseArgs } from "node:util";
import type { Settable } from "./sizes.ts";

export interface Arguments {
  readonly quick: boolean;
  readonly only: readonly string[];
  readonly subjects: readonly string[];
  readonly seed: number | undefined;
  readonly sizes: Settable;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  /** Files of results to report on, instead of measuring. */
  readonly report: readonly string[];
  /** Two files of results to hold against each other, instead of measuring. */
  readonly compare: readonly string[];
  readonly help: boolean;
}

/** Told to the user without a trace of where it was found. */
export class BadArgument extends Error {}

export function readArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parse(args);
  const files = (option: "report" | "compare"): readonly string[] => {
    const first = values[option];
    return first === undefined ? [] : [...first, ...positionals];
  };
  const report = files("report");
  const compare = files("compare");
  if (report.length > 0 && compare.length > 0) throw new BadArgument("Either --report or --compare, not both.");
  if (compare.length > 0 && compare.length !== 2) throw new BadArgument("--compare takes two files of results.");
  if (report.length + compare.length === 0 && positionals.length > 0)
    throw new BadArgument(`${positionals.join(" ")} belongs to no option.`);
  return {
    quick: values.quick,
    only: names(values.only),
    subjects: names(values.subjects),
    seed: whole("--seed", values.seed),
    sizes: sizesOf(values),
    json: values.json,
    markdown: values.markdown,
    report,
    compare,
    help: values.help,
  };
}

type Values = ReturnType<typeof parse>["values"];

/** Only what was given: the rest is decided by --quick. */
function sizesOf(values: Values): Settable {
  const loadSeconds = whole("--load-seconds", values["load-seconds"]);
  const given = {
    rounds: whole("--rounds", values.rounds),
    items: whole("--items", values.items),
    drainItems: whole("--items", values.items),
    concurrencies: wholes("--concurrency", values.concurrency),
    keys: whole("--keys", values.keys),
    rate: whole("--rate", values.rate),
    levels: wholes("--levels", values.levels)?.toSorted((a, b) => a - b),
    loadMs: loadSeconds === undefined ? undefined : loadSeconds * 1_000,
    hot: whole("--hot", values.hot),
    waiting: whole("--waiting", values.waiting),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function whole(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text.replaceAll("_", ""));
  if (!(Number.isInteger(number) && number > 0)) throw new BadArgument(`${option} is a number from 1, not ${text}.`);
  return number;
}

function wholes(option: string, text: string | undefined): readonly number[] | undefined {
  return text === undefined ? undefined : names(text).flatMap((one) => whole(option, one) ?? []);
}

function names(list: string): string[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

// Its type follows from what is declared in it.
function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        quick: { type: "boolean", default: false },
        only: { type: "string", default: "" },
        subjects: { type: "string", default: "" },
        rounds: { type: "string" },
        seed: { type: "string" },
        items: { type: "string" },
        concurrency: { type: "string" },
        keys: { type: "string" },
        rate: { type: "string" },
        levels: { type: "string" },
        "load-seconds": { type: "string" },
        hot: { type: "string" },
        waiting: { type: "string" },
        json: { type: "string" },
        markdown: { type: "string" },
        report: { type: "string", multiple: true },
        compare: { type: "string", multiple: true },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    // What follows is about arguments that begin with a dash; none does here.
    const [what = ""] = (error instanceof Error ? error.message : String(error)).split(". To specify");
    throw new BadArgument(`${what}.`);
  }
}
