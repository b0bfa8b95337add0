import { parseArgs } from "node:util";

export interface Arguments {
  readonly quick: boolean;
  readonly only: readonly string[];
  readonly subjects: readonly string[];
  readonly rounds: number | undefined;
  readonly json: string | undefined;
  readonly markdown: string | undefined;
  readonly help: boolean;
}

/** Told to the user without a trace of where it was found. */
export class BadArgument extends Error {}

export const HELP = `Compares Baton with what else one would use on one machine, in one run.

  npm run bench [-- options]

  --quick             smaller and one round: about 3 minutes instead of 12
  --only NAMES        workloads, by comma: submit, drain, latency, keyed, next, backlog, hot-key, memory, or one of theirs such as drain-16
  --subjects NAMES    by comma: sqlite, baton-nats, bullmq, pg-boss, graphile, plainjob, raw, jetstream; what they are compared with is always among them
  --rounds N          how often each is measured (3; 1 with --quick); the median counts
  --json FILE         everything that was measured
  --markdown FILE     the page docs/benchmarks.md
`;

export function readArguments(args: readonly string[]): Arguments {
  const values = parse(args);
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  if (rounds !== undefined && !(Number.isInteger(rounds) && rounds > 0))
    throw new BadArgument(`--rounds is a number from 1, not ${String(values.rounds)}.`);
  return {
    quick: values.quick,
    only: names(values.only),
    subjects: names(values.subjects),
    rounds,
    json: values.json,
    markdown: values.markdown,
    help: values.help,
  };
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
      options: {
        quick: { type: "boolean", default: false },
        only: { type: "string", default: "" },
        subjects: { type: "string", default: "" },
        rounds: { type: "string" },
        json: { type: "string" },
        markdown: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    }).values;
  } catch (error) {
    throw new BadArgument(error instanceof Error ? error.message : String(error));
  }
}
