/** What a process of a run is told when it begins. */
import type { Store } from "../scene.ts";

export interface Part {
  readonly name: string;
  /** Which of its kind it is, from 0; the same for whoever takes its place. */
  readonly place: number;
  /** How many had the place before. */
  readonly generation: number;
  readonly seed: number;
  readonly store: Store;
  readonly url: string;
  readonly folder: string;
  readonly registers: string;
  readonly leaseMs: number;
  readonly keys: number;
  readonly submitEveryMs: number;
  /** A submitter ends after so many calls. Undefined: when it is told to. */
  readonly calls?: number;
  readonly control?: string;
}

export function readPart(): Part {
  const part: unknown = JSON.parse(process.argv[2] ?? "");
  if (!isPart(part)) throw new Error("A process of a chaos run is started by the run, with its part as the argument.");
  return part;
}

function isPart(value: unknown): value is Part {
  return typeof value === "object" && value !== null && "name" in value && "url" in value && "registers" in value;
}
