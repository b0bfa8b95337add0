import { isDeepStrictEqual } from "node:util";
import type { Engine } from "../../src/engine/port.ts";
import { Player } from "./player.ts";
import type { Burst } from "./script.ts";

export interface Difference {
  readonly script: readonly Burst[];
  /** The number of the step, counted over all bursts. */
  readonly step: number;
  readonly answers: readonly [unknown, unknown];
}

export type Engines = readonly [Engine, Engine];

let played = 0;

/** Plays the script on both, and says where they first answer differently. */
export async function compare(engines: Engines, script: readonly Burst[]): Promise<Difference | undefined> {
  played += 1;
  const [one, other] = await Promise.all(engines.map((engine) => new Player(engine, `script${played}`).play(script)));
  const step = one?.findIndex((answer, index) => !isDeepStrictEqual(answer, other?.[index])) ?? -1;
  return step === -1 ? undefined : { script, step, answers: [one?.[step], other?.[step]] };
}

/** A script that still shows a difference and from which nothing can be left out without losing it. */
export async function shrink(engines: Engines, found: Difference): Promise<Difference> {
  let smallest = found;
  for (let size = Math.ceil(found.script.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let from = 0; from < smallest.script.length;) {
      const rest = smallest.script.toSpliced(from, size);
      const difference = await compare(engines, rest);
      if (difference === undefined) from += size;
      else smallest = { ...difference, script: upTo(difference) };
    }
  }
  return shrinkBursts(engines, smallest);
}

/** The same inside the bursts. */
async function shrinkBursts(engines: Engines, found: Difference): Promise<Difference> {
  let smallest = found;
  for (let index = 0; index < smallest.script.length; index += 1) {
    for (let from = 0; from < (smallest.script[index]?.length ?? 0);) {
      const burst = smallest.script[index]?.toSpliced(from, 1) ?? [];
      const difference = await compare(engines, smallest.script.with(index, burst));
      if (difference === undefined) from += 1;
      else smallest = difference;
    }
  }
  return smallest;
}

/** What comes after the difference does not matter. */
function upTo({ script, step }: Difference): readonly Burst[] {
  let steps = 0;
  const last = script.findIndex((burst) => (steps += burst.length) > step);
  return script.slice(0, last + 1);
}
