/**
 * What a run of all tests draws by lot. The same suite on many stores and ways costs minutes, and finds most of its flaws
 * on the first of them: so `npm test` plays one of them whole and a share of the others, drawn anew each time.
 *
 *     BATON_DRAW=17   draws as the run did that said so
 *     without it      nothing is left out: a file that is run by itself, and `npm run test:all`
 *
 * What is left out is a test that is skipped, and says how much it is.
 */
import { test } from "node:test";
import { Random } from "./random.ts";

/** Where all cases of an engine's conformance are played once more, in other surroundings. One of them is played whole. */
const VARIANTS = [
  "NATS cluster",
  "NATS together",
  "Valkey",
  "SQLite with wakes over NATS",
  "PostgreSQL with wakes over NATS",
  "Redis with wakes over NATS",
] as const;

export type Variant = (typeof VARIANTS)[number];

/** What `npm run test:all` sets BATON_DRAW to. */
export const ALL = "all";

/** Of the cases of the other variants. */
const SHARE = 1 / 5;
/** As many names as can still be read. */
const MOST_NAMED = 12;

/** Something that is drawn in several files alike. */
export interface Matter<T> {
  readonly what: string;
  readonly all: readonly T[];
  /** So many of them are played. */
  readonly count: number;
}

export class Draw {
  /** Undefined where nothing is left out. */
  readonly seed: number | undefined;
  /** `npm run test:all`: also what takes too long for a file that is run by itself. */
  readonly isAll: boolean;

  constructor(environment: NodeJS.ProcessEnv = process.env) {
    const given = environment["BATON_DRAW"];
    this.isAll = given === ALL;
    this.seed = given === undefined || this.isAll ? undefined : Number(given);
  }

  /** So many of them, in their order. */
  some<T>(what: string, all: readonly T[], count: number, nameOf: (one: T) => string = String): readonly T[] {
    if (this.seed === undefined || count >= all.length) return all;
    const drawn = drawFrom(all, count, new Random(this.seed ^ numberOf(what)));
    const left = all.filter((one) => !drawn.includes(one)).map(nameOf);
    const names = left.length <= MOST_NAMED ? `: ${left.join(", ")}` : "";
    const title = `BATON_DRAW=${this.seed} left out ${left.length} of ${all.length} ${what}${names}`;
    test(title, { skip: "npm run test:all plays them" }, () => undefined);
    return drawn;
  }

  /** For a matter whose parts are in several files: why this one is skipped, if the lot has fallen on others. */
  leavesOut<T>({ what, all, count }: Matter<T>, one: T): string | false {
    if (this.seed === undefined) return false;
    const drawn = drawFrom(all, count, new Random(this.seed ^ numberOf(what)));
    return drawn.includes(one) ? false : `BATON_DRAW=${this.seed} drew ${drawn.join(", ")} of ${all.length} ${what}`;
  }

  /** All cases if the lot has fallen on this variant, and a share of them otherwise. */
  cases<T extends { readonly name: string }>(variant: Variant, all: readonly T[]): readonly T[] {
    if (this.seed !== undefined && new Random(this.seed).pick(VARIANTS) === variant) return all;
    return this.some(`cases of ${variant}`, all, Math.ceil(all.length * SHARE), ({ name }) => name);
  }
}

export const draw: Draw = new Draw();

/** Real processes that are killed and stopped while they share a store. */
export const BLACK_BOXES: Matter<"SQLite" | "NATS" | "PostgreSQL" | "Redis"> = {
  what: "stores under the black box",
  all: ["SQLite", "NATS", "PostgreSQL", "Redis"],
  count: 2,
};

/** Sixteen processes that count under one lock, while some are killed and stopped. */
export const COUNTERS: Matter<"SQLite" | "NATS" | "Consul"> = {
  what: "stores under the counter",
  all: ["SQLite", "NATS", "Consul"],
  count: 1,
};

/** So many, in the order of all. */
export function drawFrom<T>(all: readonly T[], count: number, random: Random): readonly T[] {
  const left = new Set(all.keys());
  while (left.size > all.length - count) left.delete(random.pick([...left]));
  return all.filter((_, index) => !left.has(index));
}

/** FNV-1a: what is drawn for one matter says nothing of another. */
function numberOf(text: string): number {
  let bits = 0x811c9dc5;
  for (const char of text) bits = Math.imul(bits ^ (char.codePointAt(0) ?? 0), 0x01000193);
  return bits;
}
