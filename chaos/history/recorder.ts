import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { now } from "./clock.ts";
import type { Entry, Fact } from "./fact.ts";

type WithoutEntry<T> = T extends Entry ? Omit<T, keyof Entry> & { readonly at?: number } : never;

/** A fact as its author tells it: who it is and when it was are filled in. */
export type Told = WithoutEntry<Fact>;

export type Recorder = (fact: Told) => void;

/** Each line is with the system before the call returns: a process that is killed has told everything up to then. */
export function recorder(folder: string, by: string): Recorder {
  const file = openSync(join(folder, `${by}.history`), "a");
  let line = 0;
  return (fact) => {
    line += 1;
    writeSync(file, `${JSON.stringify({ at: now(), by, line, ...fact })}\n`);
  };
}
