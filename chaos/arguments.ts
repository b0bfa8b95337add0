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

Real processes on a real store, hurt on a seeded schedule, judged by what they wrote down.
Controls (flaws planted on purpose, which must be caught): ${Object.keys(CONTROLS).join(", ")}
`;

/** Throws with a sentence for the person who typed it. */
export function parseArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      engine: { type: "string", default: "sqlite" },
      minutes: { type: "string", default: "5" },
      seed: { type: "string" },
      out: { type: "string" },
      control: { type: "string" },
    },
  });
  const store = STORES.find((name) => name === values.engine);
  if (store === undefined) throw new Error(`--engine: one of ${STORES.join(", ")}; found ${values.engine}`);
  const { control } = values;
  if (control !== undefined && control !== "all" && !(control in CONTROLS))
    throw new Error(`--control: all, or one of ${Object.keys(CONTROLS).join(", ")}; found ${control}`);
  return {
    store,
    minutes: positive(values.minutes, "--minutes"),
    seed: values.seed === undefined ? randomInt(1_000_000) : positive(values.seed, "--seed"),
    folder: values.out,
    controls: control === undefined ? [] : control === "all" ? Object.keys(CONTROLS) : [control],
  };
}

function positive(text: string, name: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new Error(`${name}: a number above 0; found ${text}`);
}
