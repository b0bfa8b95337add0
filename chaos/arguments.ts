import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { CONTROLS } from "./controls/catalogue.ts";
import { type Store, STORES } from "./scene.ts";

export interface Arguments {
  readonly store: Store;
  readonly minutes: number;
  readonly seed: number;
  /** Where histories and reports go. */
  readonly folder: string | undefined;
  /** Flaws to plant, one run each. Empty: a plain run. */
  readonly controls: readonly string[];
}

export const USAGE: string = `npm run chaos -- [--engine ${STORES.join("|")}] [--minutes 5] [--seed N] [--out FOLDER] [--control all|NAME]

  --engine   the store that is hurt; sqlite unless told otherwise
  --minutes  how long faults go on, one about every five seconds; draining comes on top
  --seed     a whole number; it repeats the faults and the work, though not the timing of the machine
  --out      where histories and reports go; chaos-runs/ENGINE-SEED unless told otherwise. An earlier run that is there is removed
  --control  plants a flaw that must be caught, or all of them, a run each

Real processes on a real store, hurt on a seeded schedule, judged by what they wrote down. Exit code 0: every promise was kept.
Controls (flaws planted on purpose, which must be caught): ${Object.keys(CONTROLS).join(", ")}
`;

/** Throws with a sentence for the person who typed it. */
export function parseArguments(args: readonly string[]): Arguments | "help" {
  const { values } = parseArgs({
    args: [...args],
    options: {
      engine: { type: "string", default: "sqlite" },
      minutes: { type: "string", default: "5" },
      seed: { type: "string" },
      out: { type: "string" },
      control: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return "help";
  const store = STORES.find((name) => name === values.engine);
  if (store === undefined) throw new Error(`--engine: one of ${STORES.join(", ")}; found ${values.engine}`);
  const { control } = values;
  if (control !== undefined && control !== "all" && !Object.hasOwn(CONTROLS, control))
    throw new Error(`--control: all, or one of ${Object.keys(CONTROLS).join(", ")}; found ${control}`);
  return {
    store,
    minutes: positive(values.minutes, "--minutes"),
    seed: values.seed === undefined ? randomInt(1_000_000) : whole(values.seed, "--seed"),
    folder: values.out,
    controls: control === undefined ? [] : control === "all" ? Object.keys(CONTROLS) : [control],
  };
}

function positive(text: string, name: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`${name}: a number above 0; found ${text}`);
}

function whole(text: string, name: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new Error(`${name}: a whole number; found ${text}`);
}
